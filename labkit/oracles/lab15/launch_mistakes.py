"""Lab 15: how what goes wrong in a training that is cut short twice shows in what a run left behind.

How many steps each start took, and to which files it saved, is what the student's processes say themselves: it chooses
a hint, and what it cannot show is in the numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.exercises.lab15.launch import InterruptedTraining
from labkit.exercises.lab15.torchrun import N_RANKS
from labkit.oracles.lab15.launch_training import (
    close,
    course,
    first_departure,
)
from labkit.spec import CaseRun


def began_at_zero(run: CaseRun[InterruptedTraining]) -> bool:
    """A start went on from step 0 although there was a checkpoint."""
    case = run.case
    first_saves = (case.kill_steps // case.every * case.every, (case.kill_saves - 1) * case.every)
    at_zero = (
        left["step"] == zero and zero != right
        for left, zero, right in zip(run.got["left"], first_saves, case.kept_at, strict=False)
    )
    longest = max((steps for start in run.got["steps"][1:] for steps in start), default=0)
    return any(at_zero) or longest > case.n_steps - case.kept_at[0]


def kept_other(name: str, wrong: Callable[[CaseRun], bool]) -> Callable[[CaseRun[InterruptedTraining]], bool]:
    """Whether a checkpoint that lay there at a kill is wrong in one of its parts."""

    def when(run: CaseRun[InterruptedTraining]) -> bool:
        right = course(run).at
        return any(
            left["state"] == "whole" and wrong(left[name], right[step])
            for left, step in zip(run.got["left"], run.case.kept_at, strict=False)
        )

    return when


def slipped(slip: str, n_steps: int) -> Callable[[CaseRun[InterruptedTraining]], bool]:
    """Whether the `n_steps` losses after the first resumption are those of a training with this slip there."""

    def when(run: CaseRun[InterruptedTraining]) -> bool:
        right = course(run)
        first = run.case.begun_steps or run.case.kept_at[0]
        wrong = course(run, None if run.case.begun_steps else right.at[first], slip).losses
        span = slice(first, first + n_steps)
        expected = torch.tensor(wrong[span], dtype=torch.float64)
        differs = not close(expected, torch.tensor(right.losses[span], dtype=torch.float64))
        return differs and close(run.got["losses"][span], expected)

    return when


def from_the_start(slip: str) -> Callable[[CaseRun[InterruptedTraining]], bool]:
    """Whether the losses before the first kill are those of a training with this slip all along."""

    def when(run: CaseRun[InterruptedTraining]) -> bool:
        span = slice(run.case.begun_steps, run.case.kept_at[0])
        expected = torch.tensor(course(run, slip=slip).losses[span], dtype=torch.float64)
        return first_departure(course(run), run.got) in range(span.start, span.stop) and close(
            run.got["losses"][span], expected
        )

    return when


def never_drawn(run: CaseRun[InterruptedTraining]) -> bool:
    """Whether the first checkpoint at a kill holds a generator as it was at the start."""
    job, begun = run.tree["job"], run.tree["begun"]
    at_start = [torch.Generator().manual_seed(job["seed"] + rank).get_state() for rank in range(N_RANKS)]
    return any(map(torch.equal, run.got["left"][0]["generators"], begun["generators"] if begun else at_start))


def leaves_at_the_restart(run: CaseRun[InterruptedTraining]) -> bool:
    """The first step whose loss is wrong is the first one after the script has been started again."""
    return first_departure(course(run), run.got) == (run.case.begun_steps or run.case.kept_at[0])


def went_on_alone(run: CaseRun[InterruptedTraining]) -> bool:
    """The rank that was not killed took more than the step that was under way, which ended with the other one."""
    return len(run.got["left"]) > 0 and run.got["steps"][0][1 - run.case.kill_rank] > run.case.kill_steps + 1
