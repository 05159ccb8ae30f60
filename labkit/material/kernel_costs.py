"""What calls move and keep, side by side, for the cells of labs 12 and 13 that compare a student's kernels.

A call that meets a blank stub is left out and said to be, so that the rest of the notebook runs on. Nothing is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from labkit.blanks import each_written
from labkit.meters import track_traffic
from labkit.meters.traffic import TrafficProfile

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class StepCost:
    """A forward and a backward pass: what they moved, the forward pass's result, and the bytes that were kept.

    kept_bytes: of what autograd keeps for the backward pass; inputs count unless they were told apart.
    """

    traffic: TrafficProfile
    out: Tensor
    kept_bytes: int


def compare_traffic(calls: Mapping[Key, Callable[[], object]]) -> dict[Key, TrafficProfile]:
    """The traffic of each call by its name, without those that are not written yet."""
    return each_written({name: partial(_traffic_of, call) for name, call in calls.items()})


def compare_steps(
    calls: Mapping[str, Callable[..., Tensor]], inputs: Sequence[Tensor], count_inputs: bool = True
) -> dict[str, StepCost]:
    """A forward and a backward pass of each call on these inputs, which get gradients, with ones as what comes in.

    Results have the shape of the first input, so that the ones are made where nothing is counted.
    count_inputs: whether inputs that autograd keeps count as kept.
    """
    return each_written({name: partial(_cost_of, call, inputs, count_inputs) for name, call in calls.items()})


def _traffic_of(call: Callable[[], object]) -> TrafficProfile:
    with track_traffic() as moved:
        call()
    return moved


def _cost_of(call: Callable[..., Tensor], inputs: Sequence[Tensor], count_inputs: bool) -> StepCost:
    torch.manual_seed(0)
    leaves = [one.detach().clone().requires_grad_() for one in inputs]
    given = set() if count_inputs else {one.untyped_storage().data_ptr() for one in leaves}
    incoming, kept = torch.ones_like(leaves[0]), dict[int, int]()

    def keep(saved: Tensor) -> Tensor:
        address = saved.untyped_storage().data_ptr()
        if address not in given:
            kept[address] = saved.nbytes
        return saved

    with track_traffic() as moved, torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        out = call(*leaves)
        torch.autograd.grad(out, leaves, incoming)
    return StepCost(moved, out.detach(), sum(kept.values()))
