"""Lab 18: what is true of 1F1B: no more micro-batches held than the depth needs, in the time of PyTorch's order."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate

from labkit.exercises.lab18.orders import Pipe, play
from labkit.oracles.lab18.schedules import (
    TINY,
    Orders,
    all_the_way_one_by_one,
    deadlock,
    in_words,
    is_a_schedule,
    is_alone,
    listed,
    longest_wait,
    missing_passes,
    no_schedule_hints,
    orders_differ,
    played,
    starts_with,
    strip,
)
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle
from labkit.torch_oracles import schedule_ops

NAME = "one_f_one_b"


def may_hold(case: Pipe, stage: int) -> int:
    """So many micro-batches are under way between a stage and the end of the pipeline."""
    return min(case.n_microbatches, case.n_stages - stage)


@lru_cache(maxsize=256)
def reference(n_stages: int, n_microbatches: int) -> Orders:
    """PyTorch's order. It has none for fewer micro-batches than stages: then what is left of it without the others."""
    ranks = schedule_ops("1F1B", n_stages, max(n_stages, n_microbatches))
    return [[action for action in order if action.microbatch < n_microbatches] for order in ranks]


def due(case: Pipe) -> float:
    """What PyTorch's order takes."""
    return play(reference(case.n_stages, case.n_microbatches), case).makespan


def holds_little(run: CaseRun[Pipe]) -> str | None:
    """Stage i of p holds at most p - i micro-batches."""
    for stage, held in enumerate(played(run, NAME).peak_live):
        enough = may_hold(run.case, stage)
        if held > enough:
            return f"stage {stage} holds the activations of {held} micro-batches at once, and {enough} are enough"
    return None


def is_short(run: CaseRun[Pipe]) -> str | None:
    """It takes no longer than PyTorch's."""
    taken, possible = played(run, NAME).makespan, due(run.case)
    if taken > possible + TINY:
        return f"the step takes {taken:g} units of time in this order, and {possible:g} are possible with that memory"
    return None


def warm_up(wrong: Callable[[Pipe, int], int]) -> Callable[[CaseRun[Pipe]], object]:
    """The condition that so many forward passes come first on every stage; never more than there are micro-batches."""
    return starts_with(NAME, lambda case, stage: min(case.n_microbatches, wrong(case, stage)), may_hold)


def past_the_last(run: CaseRun[Pipe]) -> bool:
    """The micro-batches are fewer than the stages, and some are listed that do not exist."""
    named = [action.microbatch for order in listed(run, NAME) for action in order]
    return run.case.n_stages > run.case.n_microbatches <= max(named)


def backward_is_cut_short(run: CaseRun[Pipe]) -> object:
    """All forward passes are there, and every stage lacks its last backward passes: as many as it warmed up with."""
    short = []
    for stage, order in enumerate(listed(run, NAME)):
        forward = [action for action in order if action.kind == "F"]
        if len(forward) != run.case.n_microbatches:
            return False
        missing = run.case.n_microbatches - (len(order) - len(forward))
        short.append(missing in (0, may_hold(run.case, stage) - 1, may_hold(run.case, stage)))
        if stage == 0 and missing == 0:
            return CANNOT_TELL if is_alone(run.case) else False
    return all(short)


def newest_first(run: CaseRun[Pipe]) -> object:
    """Some stage goes back through the micro-batches in another order than forward."""
    if is_alone(run.case):
        return CANNOT_TELL
    ways = [
        [[action.microbatch for action in order if action.kind == kind] for kind in "FB"] for order in listed(run, NAME)
    ]
    return any(forward != backward for forward, backward in ways)


def empties_in_between(run: CaseRun[Pipe]) -> object:
    """Stage 0 lets the pipeline run empty before the end: it holds nothing after some pass in the middle."""
    if run.case.n_microbatches <= run.case.n_stages or run.case.n_stages == 1:
        return CANNOT_TELL
    counts = list(accumulate(1 if action.kind == "F" else -1 for action in listed(run, NAME)[0]))
    return 0 in counts[:-1] and max(counts) > 1


ONE_F_ONE_B = Oracle(
    id="18-one-f-one-b",
    call=in_words(NAME),
    judge=(is_a_schedule(NAME), holds_little, is_short),
    fact=lambda run: longest_wait(played(run, NAME)),
    strip=strip(NAME),
    axis="other numbers of stages and micro-batches, stages that differ, and messages that take time",
    diagnose=(
        Hint(
            past_the_last,
            "With fewer micro-batches than stages the warm-up is shorter: a stage cannot run more forward passes "
            "than there are micro-batches.",
        ),
        *no_schedule_hints(NAME),
        Hint(
            backward_is_cut_short,
            "The last backward passes are missing. After the last pair, a stage still holds as many micro-batches as "
            "its warm-up had: run the backward pass of each of them.",
        ),
        missing_passes(NAME),
        Hint(
            all_the_way_one_by_one(NAME),
            "Without a warm-up every stage waits for each gradient before it starts the next micro-batch, and again "
            "only one stage works at a time. Stage 0 can send n_stages micro-batches before its first backward pass.",
        ),
        Hint(
            empties_in_between,
            "Stage 0 goes back through everything that it holds before it takes a new micro-batch, so the pipeline "
            "runs empty in the middle of the step and has to fill up again. After each backward pass, run the forward "
            "pass of one new micro-batch.",
        ),
        Hint(
            warm_up(lambda case, stage: stage + 1),
            "The warm-up is counted from the wrong end. The last stage can go back at once, and stage 0 has to wait "
            "longest, so the early stages run more forward passes first.",
        ),
        Hint(
            warm_up(lambda case, stage: case.n_microbatches),
            "Every stage runs all its forward passes first: that is GPipe. It takes just as long, but a stage holds "
            "all micro-batches. Let stage i start its backward passes after n_stages - i forward passes.",
        ),
        Hint(
            warm_up(lambda case, stage: case.n_stages),
            "Every stage has the warm-up of stage 0. Gradients come back to the late stages sooner: the last one can "
            "go back right after its first forward pass.",
        ),
        Hint(
            warm_up(lambda case, stage: max(2, case.n_stages - stage)),
            "The last stage has a warm-up of one forward pass. It has none: it can go back right after its first "
            "forward pass.",
        ),
        Hint(
            warm_up(lambda case, stage: case.n_stages - stage + 1),
            "The warm-up is one forward pass too long on every stage: before its first backward pass, stage i runs "
            "n_stages - i forward passes, the one of the first pair included. One more costs memory and saves no time.",
        ),
        Hint(
            warm_up(lambda case, stage: 2 * (case.n_stages - stage) - 1),
            "The warm-up is twice as long as it has to be. That helps where messages are slow, but here a stage holds "
            "too much: before its first backward pass, stage i runs n_stages - i forward passes.",
        ),
        Hint(
            warm_up(lambda case, stage: max(1, case.n_stages - stage - 1)),
            "The warm-up is one forward pass too short on every stage, so a stage waits for its first gradient with "
            "nothing to do. Before its first backward pass, stage i runs n_stages - i forward passes, the one of the "
            "first pair included.",
        ),
        Hint(
            orders_differ(NAME, "F"),
            "The stages take the micro-batches forward in different orders. A stage can only take what the stage "
            "before it has sent, so use one order on all stages.",
        ),
        Hint(
            newest_first,
            "The gradient that arrives first is that of the oldest micro-batch. Go back through the micro-batches in "
            "the order in which they went forward.",
        ),
        Hint(
            deadlock(NAME),
            "Stages wait for each other: one lists a backward pass before a forward pass that the later stages still "
            "wait for. Compare how many forward passes come first on each stage.",
        ),
    ),
)
