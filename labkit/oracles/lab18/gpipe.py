"""Lab 18: what is true of GPipe's order: all forward passes first, in the time that the stages allow."""

from __future__ import annotations

from labkit.exercises.lab18.orders import Pipe
from labkit.oracles.lab18.schedules import (
    TINY,
    all_the_way_one_by_one,
    deadlock,
    forward_first,
    in_words,
    is_a_schedule,
    listed,
    longest_wait,
    missing_passes,
    no_schedule_hints,
    orders_differ,
    played,
    strip,
    why_not,
)
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

NAME = "gpipe"


def least(case: Pipe) -> float:
    """What all forward passes and then all backward passes take at least: the first micro-batch goes through all
    stages, and then the slowest stage sets the pace."""
    costs = case.costs
    backward = [costs.input_grad[stage] + costs.weight_grad[stage] for stage in range(case.n_stages)]
    through = sum(costs.forward) + sum(backward) + 2 * (case.n_stages - 1) * case.transfer
    return through + (case.n_microbatches - 1) * (max(costs.forward) + max(backward))


def holds_all(run: CaseRun[Pipe]) -> str | None:
    """Every stage holds all micro-batches when its backward passes begin."""
    for stage, held in enumerate(played(run, NAME).peak_live):
        if held != run.case.n_microbatches:
            return (
                f"stage {stage} starts a backward pass while it holds {held} micro-batches: in GPipe all "
                f"{run.case.n_microbatches} forward passes come first"
            )
    return None


def is_short(run: CaseRun[Pipe]) -> str | None:
    """No stage waits longer than it must."""
    taken, possible = played(run, NAME).makespan, least(run.case)
    if taken > possible + TINY:
        return f"the step takes {taken:g} units of time in this order, and {possible:g} are possible"
    return None


def turns_round_early(run: CaseRun[Pipe]) -> object:
    """On some stage a backward pass comes before the last forward pass, and it is a schedule."""
    if run.case.n_microbatches == 1:
        return CANNOT_TELL
    ahead = [forward_first(order) for order in listed(run, NAME)]
    return why_not(run, NAME) is None and any(n < run.case.n_microbatches for n in ahead)


def misses_the_last(run: CaseRun[Pipe]) -> bool:
    """Every pass of the last micro-batch is missing, and no other."""
    last = run.case.n_microbatches - 1
    named = [{(a.kind, a.microbatch) for a in order} for order in listed(run, NAME)]
    rest = {(kind, microbatch) for kind in "FB" for microbatch in range(last)}
    return all(passes == rest for passes in named)


def misses_backward(run: CaseRun[Pipe]) -> bool:
    return all(action.kind == "F" for order in listed(run, NAME) for action in order)


GPIPE = Oracle(
    id="18-gpipe",
    call=in_words(NAME),
    judge=(is_a_schedule(NAME), holds_all, is_short),
    fact=lambda run: longest_wait(played(run, NAME)),
    strip=strip(NAME),
    axis="other numbers of stages and micro-batches, stages that differ, and messages that take time",
    diagnose=(
        *no_schedule_hints(NAME),
        Hint(
            misses_the_last,
            "The last micro-batch is missing on every stage: there are n_microbatches of them, from 0 to "
            "n_microbatches - 1.",
        ),
        Hint(misses_backward, "The backward passes are missing: every stage also goes back through each micro-batch."),
        missing_passes(NAME),
        Hint(
            all_the_way_one_by_one(NAME),
            "Every stage waits for a micro-batch's gradient before it starts the next micro-batch, so again only one "
            "stage works at a time. List all forward passes first, then all backward passes.",
        ),
        Hint(
            deadlock(NAME),
            "Two stages wait for each other: one lists a backward pass before a forward pass that the next stage still "
            "waits for. List all forward passes before the first backward pass on every stage.",
        ),
        Hint(
            turns_round_early,
            "Some stage goes back before its last forward pass. That can save memory, and the next exercise is about "
            "it. In GPipe, every stage lists all forward passes first.",
        ),
        Hint(
            orders_differ(NAME, "F"),
            "The stages take the micro-batches forward in different orders. A stage can only take what the stage "
            "before it has sent, so use one order on all stages.",
        ),
        Hint(
            orders_differ(NAME, "B"),
            "The stages take the micro-batches backward in different orders, so one waits for a gradient that the next "
            "stage computes late. Either order is fine (oldest first, or newest first) as long as all stages use it.",
        ),
    ),
)
