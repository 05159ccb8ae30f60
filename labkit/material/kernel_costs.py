"""What calls move and keep, side by side, for the cells of labs 12 and 13 that compare a student's kernels.

A call that meets a blank stub is left out and said to be, so that the rest of the notebook runs on. Nothing is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from labkit.blanks import left_out
from labkit.meters import track_traffic
from labkit.meters.traffic import TrafficProfile
from labkit.spec import STUB_MESSAGE

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class StepCost:
    """A forward and a backward pass: what they moved, the forward pass's result, and the bytes that were kept.

    kept_bytes: of what autograd keeps for the backward pass; inputs count unless they were told apart.
    """

    traffic: TrafficProfile
    out: Tensor
    kept_bytes: int


def is_written(call: Callable[[], object]) -> bool:
    """Whether a call meets no blank stub; if it does, a line says so."""
    try:
        call()
    except NotImplementedError as error:
        _say_blank("your answer", error)
        return False
    return True


def compare_traffic(calls: Mapping[Key, Callable[[], object]]) -> dict[Key, TrafficProfile]:
    """The traffic of each call by its name, without those that are not written yet."""
    found = {}
    for name, call in calls.items():
        try:
            with track_traffic() as moved:
                call()
        except NotImplementedError as error:
            _say_blank(name, error)
        else:
            found[name] = moved
    return found


def compare_steps(
    calls: Mapping[str, Callable[..., Tensor]], inputs: Sequence[Tensor], count_inputs: bool = True
) -> dict[str, StepCost]:
    """A forward and a backward pass of each call on these inputs, which get gradients, with ones as what comes in.

    Results have the shape of the first input, so that the ones are made where nothing is counted.
    count_inputs: whether inputs that autograd keeps count as kept.
    """
    found = {}
    for name, call in calls.items():
        torch.manual_seed(0)
        leaves = [one.detach().clone().requires_grad_() for one in inputs]
        given = set() if count_inputs else {one.untyped_storage().data_ptr() for one in leaves}
        incoming, kept = torch.ones_like(leaves[0]), dict[int, int]()

        def keep(saved: Tensor, kept=kept, given=given) -> Tensor:
            address = saved.untyped_storage().data_ptr()
            if address not in given:
                kept[address] = saved.nbytes
            return saved

        try:
            with track_traffic() as moved, torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
                out = call(*leaves)
                torch.autograd.grad(out, leaves, incoming)
        except NotImplementedError as error:
            _say_blank(name, error)
        else:
            found[name] = StepCost(moved, out.detach(), sum(kept.values()))
    return found


def _say_blank(name: object, error: NotImplementedError) -> None:
    if str(error) != STUB_MESSAGE:
        raise error
    print(left_out(str(name)))
