"""16-volume's formulas against what PyTorch's `fully_shard` calls on 64 ranks, and against runs that are counted."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from labkit.exercises.lab16.volume import METHODS
from labkit.ranks import Comm, measure_ranks
from labkit.torch_oracles import collectives_of_fully_shard
from tests.exercises.harness import answers_in, solution_of

pytestmark = pytest.mark.lab("16")
N_LAYERS, WIDTH = 3, 64
N_PARAMS = N_LAYERS * WIDTH * WIDTH
BF16 = torch.bfloat16


@pytest.fixture(scope="module")
def answer() -> dict[str, object]:
    return answers_in("16-volume", solution_of("16-volume"))


def sent_by_fully_shard(n_ranks: int, n_replicas: int = 1) -> float:
    calls = collectives_of_fully_shard(
        lambda: nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(N_LAYERS)]),
        lambda model: model,
        lambda model: model(torch.zeros(2, WIDTH)).sum(),
        n_ranks,
        n_replicas,
        param_dtype=BF16,
        reduce_dtype=BF16,
    )
    return sum(call.sent_bytes for call in calls)


@pytest.mark.parametrize("method", ["ddp", "zero3", "hybrid"])
@pytest.mark.parametrize(("n_nodes", "per_node"), [(1, 2), (1, 4), (2, 2), (8, 8)])
def test_fully_shard_sends_on_this_mesh_what_the_formula_says(answer, method: str, n_nodes: int, per_node: int) -> None:
    sent, _ = answer["bytes_sent"](method, N_PARAMS, n_nodes, per_node)
    n_replicas, n_shards = answer["mesh_shape"](method, n_nodes, per_node)
    assert sent == pytest.approx(sent_by_fully_shard(n_replicas * n_shards, n_replicas), rel=1e-12)


def one_step(comm: Comm, method: str, n_micro: int) -> int:
    """The passes of a step, of random numbers in 16 bits; the bytes of what is kept, with its states."""
    weights = torch.zeros(N_PARAMS, dtype=BF16)
    part = torch.zeros(N_PARAMS // comm.world_size, dtype=BF16)
    if method == "ddp":
        comm.all_reduce(weights)
    for micro in range(n_micro):
        if method == "zero3":
            comm.all_gather_single(weights, part)
            comm.all_gather_single(weights, part)
        if method in ("zero2", "zero3") or (method == "zero1" and micro == 0):
            comm.reduce_scatter_single(part, weights.clone())
    if method in ("zero1", "zero2"):
        comm.all_gather_single(weights, part)
    kept = {"ddp": (weights, weights, weights), "zero1": (weights, weights, part), "zero2": (weights, part, part)}
    of_weights, of_grads, of_states = kept.get(method, (part, part, part))
    return of_weights.nbytes + of_grads.nbytes + 3 * of_states.float().nbytes


@pytest.mark.parametrize("n_ranks", [2, 4])
@pytest.mark.parametrize("n_micro", [1, 3])
@pytest.mark.parametrize("method", METHODS[:4])
def test_counted_runs_keep_and_send_what_the_formulas_say(answer, method: str, n_micro: int, n_ranks: int) -> None:
    kept, traffic = measure_ranks(lambda comm: one_step(comm, method, n_micro), n_ranks)
    assert set(kept) == {answer["bytes_kept"](method, N_PARAMS, 1, n_ranks)}
    sent, crossed = answer["bytes_sent"](method, N_PARAMS, 1, n_ranks, n_micro)
    assert {*traffic.bytes_sent} == {sent}
    assert crossed == 0


def deepspeed_scales(overflows: set[int], n_steps: int, window: int = 1000, hysteresis: int = 2) -> list[int]:
    """The power of two after each step, by the rules of DeepSpeed 0.19.8's DynamicLossScaler."""
    power, left, last, found = 16, hysteresis, -1, []
    for step in range(n_steps):
        if step in overflows:
            power, left = (power - 1, left) if left == 1 else (power, left - 1)
            last = step
        elif (good := step - last - 1) > 0 and good % window == 0:
            power, left = power + 1, hysteresis
        found.append(power)
    return found


def test_the_loss_scales_that_the_lab_quotes() -> None:
    scales = deepspeed_scales({10, 500, 501}, 1600)
    assert [scales[step] for step in (9, 10, 500, 501)] == [16, 16, 15, 14]
    assert [power for power, before in zip(scales[1:], scales) if power > before] == [15]
    assert 1500 < scales.index(15, 502) < 1505


def test_the_basement_figures_that_the_lab_quotes(answer) -> None:
    kept = {method: answer["bytes_kept"](method, 1.1e9, 1, 4) / 1e9 for method in METHODS[:4]}
    seconds = {method: answer["bytes_sent"](method, 1.1e9, 1, 4, 8)[0] / 3.9e9 for method in METHODS[:4]}
    assert kept["ddp"] > 8
    assert [round(8 - kept[method], 2) for method in METHODS[1:4]] == [0.3, 1.95, 3.6]
    assert [round(seconds[method], 2) for method in METHODS[:4]] == [0.85, 0.85, 3.81, 10.15]
