"""One pass of one micro-batch through one stage, what it has to wait for, and what it takes.

Ranks and orders are no business of this module: a stage may be anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["F", "B", "I", "W"]
KINDS: tuple[Kind, ...] = ("F", "B", "I", "W")
NAMES = {"F": "forward pass", "B": "backward pass", "I": "input gradient", "W": "weight gradient"}


@dataclass(frozen=True)
class Action:
    """One pass of one micro-batch through one stage. kind: "F" forward; "B" backward, or its two halves "I", the
    gradient of the input, and "W", those of the weights. These are PyTorch's names.

        Action("F", stage=0, microbatch=3)
    """

    kind: str
    stage: int
    microbatch: int

    def __str__(self) -> str:
        return f"{self.kind}{self.microbatch} on stage {self.stage}"


@dataclass(frozen=True)
class Costs:
    """How long the passes of each stage take, in any unit of time. A backward pass takes as long as its two halves.

    Costs(forward=(1.0, 1.0), input_grad=(1.0, 1.0), weight_grad=(1.0, 1.0))
    """

    forward: tuple[float, ...]
    input_grad: tuple[float, ...]
    weight_grad: tuple[float, ...]

    def __post_init__(self) -> None:
        times = (self.forward, self.input_grad, self.weight_grad)
        if len({len(one) for one in times}) > 1:
            raise ValueError("every stage needs all three times")
        if any(time < 0 for one in times for time in one):
            raise ValueError("a pass cannot take less than no time")

    @classmethod
    def equal(cls, n_stages: int, forward: float = 1.0, backward: float = 2.0) -> Costs:
        """All stages alike, with the backward pass cut in two equal halves."""
        return cls.of([forward] * n_stages, [backward] * n_stages)

    @classmethod
    def of(cls, forward: Sequence[float], backward: Sequence[float] | None = None) -> Costs:
        """By stage; a backward pass takes twice as long as the forward pass unless it is said how long."""
        backward = [2 * time for time in forward] if backward is None else backward
        halves = tuple(time / 2 for time in backward)
        return cls(tuple(forward), halves, halves)

    @property
    def n_stages(self) -> int:
        return len(self.forward)

    def time_of(self, action: Action) -> float:
        """What this pass takes."""
        stage = action.stage
        return {
            "F": self.forward[stage],
            "B": self.input_grad[stage] + self.weight_grad[stage],
            "I": self.input_grad[stage],
            "W": self.weight_grad[stage],
        }[action.kind]

    def time_of_micro_batch(self, stage: int) -> float:
        """What all passes of one micro-batch through this stage take together."""
        return self.forward[stage] + self.input_grad[stage] + self.weight_grad[stage]


def needs(action: Action, n_stages: int) -> tuple[tuple[Action, ...], ...]:
    """What has to have ended before it begins: one of each group.

    A gradient with respect to a stage's input comes from a whole backward pass or from its first half.

        needs(Action("B", 0, 3), 2) == ((Action("F", 0, 3),), (Action("B", 1, 3), Action("I", 1, 3)))
    """
    stage, microbatch = action.stage, action.microbatch
    if action.kind == "F":
        return ((Action("F", stage - 1, microbatch),),) if stage else ()
    if action.kind == "W":
        return ((Action("I", stage, microbatch),),)
    own = (Action("F", stage, microbatch),)
    if stage == n_stages - 1:
        return (own,)
    return own, (Action("B", stage + 1, microbatch), Action("I", stage + 1, microbatch))


def in_words(action: Action) -> str:
    """ "the backward pass of micro-batch 3 on stage 0" """
    return f"the {NAMES[action.kind]} of micro-batch {action.microbatch} on stage {action.stage}"
