"""What `fully_shard` calls, on ranks that are not there: the textbook's collectives, with the textbook's bytes."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
import torch.distributed as dist
from torch import nn

from labkit.torch_oracles import Collective, collectives_of_fully_shard

N_LAYERS = 4
WIDTH = 64
LAYER_BYTES = 4 * WIDTH * WIDTH


def build() -> nn.Module:
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(N_LAYERS)])


def found(n_ranks: int, **options: object) -> list[Collective]:
    return collectives_of_fully_shard(
        build, lambda model: model, lambda model: model(torch.zeros(2, WIDTH)).sum(), n_ranks, **options
    )


def counts(calls: list[Collective]) -> Counter:
    return Counter(call.name for call in calls)


@pytest.mark.parametrize("n", [2, 4, 64])
def test_every_layer_is_gathered_twice_and_reduced_once(n: int) -> None:
    calls = found(n)
    assert counts(calls) == {"all_gather": 2 * N_LAYERS, "reduce_scatter": N_LAYERS}
    assert {(call.n_bytes, call.n_ranks, call.dtype) for call in calls} == {(LAYER_BYTES, n, torch.float32)}
    assert sum(call.sent_bytes for call in calls) == 3 * N_LAYERS * LAYER_BYTES * (n - 1) / n
    assert not dist.is_initialized()


def test_of_what_is_kept_nothing_is_gathered_again() -> None:
    assert counts(found(64, reshard_after_forward=False)) == {"all_gather": N_LAYERS, "reduce_scatter": N_LAYERS}


def test_in_16_bits_each_way_has_its_own_bytes() -> None:
    calls = found(64, param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    assert {(call.name, call.n_bytes, call.dtype) for call in calls} == {
        ("all_gather", LAYER_BYTES // 2, torch.bfloat16),
        ("reduce_scatter", LAYER_BYTES, torch.float32),
    }


def test_hybrid_sharding_sums_shards_over_the_replicas() -> None:
    calls = found(64, n_replicas=8)
    assert counts(calls) == {"all_gather": 2 * N_LAYERS, "reduce_scatter": N_LAYERS, "all_reduce": N_LAYERS}
    assert {call.n_ranks for call in calls} == {8}
    assert {call.n_bytes for call in calls if call.name == "all_reduce"} == {LAYER_BYTES // 8}


def test_two_steps_are_twice_one() -> None:
    assert found(4, n_steps=2) == found(4) * 2


def test_what_no_unit_has_is_one_more() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.scale = build(), nn.Parameter(torch.ones(10))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.layers(x).sum() * self.scale).sum()

    calls = collectives_of_fully_shard(
        Scaled, lambda model: model.layers, lambda model: model(torch.zeros(2, WIDTH)), 2
    )
    # It is not freed after the forward pass, so it is gathered once.
    assert counts([call for call in calls if call.n_bytes == 40]) == {"all_gather": 1, "reduce_scatter": 1}
    assert {call.n_bytes for call in calls} == {40, LAYER_BYTES}


def test_groups_of_one_size() -> None:
    with pytest.raises(ValueError, match="6 ranks are not 4 groups of one size"):
        found(6, n_replicas=4)


def test_a_step_that_fails_leaves_no_group_behind() -> None:
    with pytest.raises(RuntimeError):
        collectives_of_fully_shard(build, lambda model: model, lambda model: model(torch.zeros(2, 3)).sum(), 2)
    assert not dist.is_initialized()
