"""What lab 11's notebook says of bytes and launches is what the meters and the simulated device say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from grading.demo.examples import example
from labkit import track_compile
from labkit.exercises.lab11.memory import as_module, forward_graph
from labkit.material.lab11 import schema_of
from labkit.material.lab11_bytes import cuts_of, eager_kept_bytes, eager_kernels, loop_of
from labkit.material.lab11_four_ways import FourWays, Way, four_ways
from labkit.meters.compile.saved import kept_bytes
from labkit.oracles.lab11.cuda_graph import true_pays_from_s
from labkit.oracles.lab11.memory import true_kept
from labkit.simdevice import Machine, SimDevice
from tests.exercises.harness import answers_in, solution_of
from tests.simt.harness import require_nvrtc

pytestmark = [pytest.mark.slow, pytest.mark.lab("11")]
N = 4 * 24 * 16


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    gen = torch.Generator().manual_seed(0)
    return tuple(torch.randn(shape, generator=gen, requires_grad=True) for shape in ((24, 16), (16, 16)))


def by_hand(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = x @ w
    return 0.5 * h * (1 + torch.tanh(0.8 * (h + 0.04 * h**3)))


FUNCTIONS: dict[str, Callable] = {
    "by hand": by_hand,
    "products": lambda x, w: x @ w @ w @ w,
    "gated": lambda x, w: (F.silu(x @ w) * (x @ w.t())) @ w,
    "elementwise": lambda x, w: torch.tanh(x.exp()) * torch.sigmoid(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_the_cut_keeps_is_what_inductor_keeps(name: str) -> None:
    (cut,) = cuts_of(FUNCTIONS[name], *inputs())
    torch.compiler.reset()
    with track_compile() as compiled:
        torch.compile(FUNCTIONS[name])(*inputs())
    (saved,) = compiled.saved
    assert kept_bytes(cut.forward, cut.n_outputs) == saved.after_bytes
    assert saved.before_bytes == eager_kept_bytes(FUNCTIONS[name], *inputs())


def test_a_smaller_budget_keeps_less() -> None:
    kept = [kept_bytes(cut.forward, cut.n_outputs) for b in (1.0, 0.0) for cut in cuts_of(by_hand, *inputs(), budget=b)]
    assert kept == [N, 0]


def test_eager_mode_keeps_each_storage_once_and_no_input() -> None:
    """The product's result is read by the square and by the sine; x and w are there anyway."""
    assert eager_kept_bytes(lambda x, w: (x @ w).square() + (x @ w).sin(), *inputs()) == 2 * N
    assert eager_kept_bytes(lambda x, w: (lambda h: h.square() + h.sin())(x @ w), *inputs()) == N
    assert eager_kept_bytes(lambda x, w: x.t().sin(), *inputs()) == 0


def test_hand_made_graphs_keep_what_the_meter_counts() -> None:
    """The oracle works from the description, the meter from the graph that is made of it."""
    gen = torch.Generator().manual_seed(0)
    for n_kept in range(1, 8):
        data = forward_graph(gen, n_kept)
        assert kept_bytes(as_module(data), data["n_outputs"]) == true_kept(data) > 0


def test_each_eager_operation_is_a_kernel_with_its_bytes() -> None:
    x = torch.ones(24, 16)
    kernels = eager_kernels(lambda x: torch.sigmoid(x) * x, x)
    assert [(one.operations, one.total_bytes, one.generated) for one in kernels] == [
        (("sigmoid",), 2 * N, False),
        (("mul",), 3 * N, False),
    ]


def test_what_is_compiled_inside_is_counted_as_it_is_written() -> None:
    x = torch.ones(24, 16)
    inner = torch.compile(lambda x: torch.sigmoid(x) * x)
    names = [one.operations for one in eager_kernels(lambda x: inner(x) + 1, x)]
    assert names == [("sigmoid",), ("mul",), ("add",)]
    with pytest.raises(TypeError, match="copy it to the host first"):
        eager_kernels(lambda x: x.numpy(), x)


def test_a_schema_is_found_whichever_way_made_the_operator() -> None:
    @torch.library.custom_op("lab11_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    packet = torch.ops.lab11_test.twice
    schemas = {str(schema_of(made)) for made in (twice, packet, packet.default)}
    assert schemas == {"lab11_test::twice(Tensor x) -> Tensor"}


def test_the_loop_is_cut_out_of_the_code() -> None:
    torch.compiler.reset()
    with track_compile(source=True) as compiled:
        torch.compile(lambda x: x * 2 + 1)(torch.ones(24, 16))
    loop = loop_of(compiled.codes[0].source)
    assert loop.startswith('extern "C"') and loop.endswith("}") and "import" not in loop
    assert loop_of("no loop") == "no loop"


@pytest.mark.parametrize(("n_kernels", "kernel_s", "copy_s"), [(12, 3e-6, 2e-6), (5, 8e-6, 1e-5)])
def test_a_graph_pays_from_where_the_simulated_loop_gets_slower(n_kernels: int, kernel_s: float, copy_s: float) -> None:
    graphed = answers_in("11-cuda-graph", solution_of("11-cuda-graph"))["graphed"]

    def step(x: torch.Tensor) -> torch.Tensor:
        for _ in range(n_kernels):
            x = x + 1
        return x

    def step_s(launch_s: float, is_graphed: bool, n_steps: int = 200) -> float:
        machine = Machine(launch_s=launch_s, kernel_s=kernel_s, copy_s=copy_s, memory_bytes_per_s=1e15)
        with SimDevice(machine) as sim:
            x = torch.zeros(4, device=sim.device)
            batch = torch.zeros(4).pin_memory()
            run = graphed(sim, step, x) if is_graphed else lambda one: step(x.copy_(one, non_blocking=True))
            sim.synchronize()
            start_s = sim.now_s
            for _ in range(n_steps):
                run(batch)
            sim.synchronize()
            return (sim.now_s - start_s) / n_steps

    limit_s = true_pays_from_s((kernel_s,) * n_kernels, copy_s)
    assert step_s(1.1 * limit_s, False) > 1.05 * step_s(1.1 * limit_s, True)
    assert step_s(0.9 * limit_s, False) == pytest.approx(step_s(0.9 * limit_s, True), rel=0.02)


def test_of_four_ways_the_last_three_move_what_has_to_be_moved() -> None:
    require_nvrtc()
    pytest.importorskip("triton")
    as_it_stands = example("wrong", "11-fuse/the_chain_as_it_stands").source
    chain, fused = (answers_in("11-fuse", source)["fused"] for source in (as_it_stands, solution_of("11-fuse")))
    found = four_ways(chain, fused)
    eager, *others = found.ways
    assert (eager.kernels, [way.kernels for way in others]) == (15, [1, 1, 1])
    assert eager.total_bytes > 10 * found.ideal_bytes
    # `scale` is read once for each of three blocks.
    assert [way.total_bytes - found.ideal_bytes for way in others] == [0, 512, 512]
    assert str(found).count("\n") == 4 and "1.01" in str(found)


def test_a_way_that_is_not_there_says_which_lab_needs_it() -> None:
    table = str(FourWays((Way("Triton, by hand", None, None, "12"),), 1))
    assert " ".join(table.splitlines()[1].split()) == "Triton, by hand not measured here: see lab 12"
