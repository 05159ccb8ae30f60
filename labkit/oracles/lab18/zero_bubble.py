"""Lab 18: what is true of a schedule that splits the backward pass: it fits, and its bubble is nearly the smallest."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise

from labkit.exercises.lab18.orders import BadEntry
from labkit.exercises.lab18.zero_bubble import Split, passes_of, play_split
from labkit.oracles.hints import Condition, once
from labkit.oracles.lab18.schedules import TINY, Orders
from labkit.pipeline import ScheduleError, ScheduleRun
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

NEAR = 0.05
"""So much larger than that of the best schedule the bubble may be."""


@once
def listed(run: CaseRun[Split]) -> Orders:
    """The passes of each stage. Raises BadEntry."""
    return passes_of(run.got["orders"], run.case)


@once
def played(run: CaseRun[Split]) -> ScheduleRun:
    """Raises BadEntry and ScheduleError."""
    return play_split(listed(run), run.case)


@once
def why_not(run: CaseRun[Split]) -> ScheduleError | None:
    """Why it cannot run. Raises BadEntry."""
    try:
        played(run)
    except ScheduleError as error:
        return error
    return None


def is_a_schedule(run: CaseRun[Split]) -> str | None:
    """Every stage runs all three passes of every micro-batch, no pass waits for ever, and no stage holds too much."""
    try:
        played(run)
    except (BadEntry, ScheduleError) as error:
        return str(error)
    return None


def is_short(run: CaseRun[Split]) -> str | None:
    """The bubble is at most five percent larger than the smallest one that is known."""
    case, taken = run.case, played(run)
    least = case.n_stages * case.best - case.busy
    if sum(taken.idle) > (1 + NEAR) * least + TINY:
        return (
            f"the step takes {taken.makespan:g} units of time, and the best known one {case.best:g}: all stages "
            f"together wait {sum(taken.idle):g} units, where {least:g} are enough (5 % more are allowed)"
        )
    return None


def kind_is(*kinds: str) -> Condition:
    """The orders cannot run, for this reason."""
    return lambda run: (error := why_not(run)) is not None and error.kind in kinds


def seen_with(least_stages: int, condition: Condition) -> Callable[[CaseRun[Split]], object]:
    """The condition, asked where there are so many stages; fewer look alike with and without the mistake."""
    return lambda run: condition(run) if run.case.n_stages >= least_stages else CANNOT_TELL


def weight_before_input(run: CaseRun[Split]) -> bool:
    error = why_not(run)
    return error is not None and error.kind == "order" and error.action is not None and error.action.kind == "W"


def holds_forward_passes(run: CaseRun[Split]) -> object:
    """It holds too much before it has gone back once."""
    if run.case.n_microbatches <= run.case.memory:
        return CANNOT_TELL
    return kind_is("memory")(run) and any(
        all(one.kind == "F" for one in order[: run.case.memory + 1]) for order in listed(run)
    )


def holds_too_much(run: CaseRun[Split]) -> object:
    """Some stage does. All micro-batches may fit."""
    return CANNOT_TELL if run.case.n_microbatches <= run.case.memory else kind_is("memory")(run)


def weights_last(run: CaseRun[Split]) -> object:
    """The weight gradients come last on every stage, so that it holds too much."""
    m = run.case.n_microbatches
    if m <= run.case.memory:
        return CANNOT_TELL
    return all([one.kind for one in order[-m:]] == ["W"] * m for order in listed(run))


def never_apart(run: CaseRun[Split]) -> bool:
    """Right after each input gradient stands its weight gradient, on every stage."""
    for order in listed(run):
        followed = {before: after for before, after in pairwise(order)}
        for one in order:
            after = followed.get(one)
            if one.kind == "I" and (after is None or (after.kind, after.microbatch) != ("W", one.microbatch)):
                return False
    return True


def whole_backward(run: CaseRun[Split]) -> bool:
    return any(entry[0] == "B" for order in run.got["orders"] for entry in order)


def one_stage_only(run: CaseRun[Split]) -> object:
    """What came back is the order of one stage, or there are not as many as stages."""
    orders = run.got["orders"]
    if not isinstance(orders, list | tuple) or not orders:
        return True
    return isinstance(orders[0][0], str) or len(orders) != run.case.n_stages


def differs_only(run: CaseRun[Split]) -> bool:
    """The stages or their passes differ, and the schedule is one, only too long."""
    return not run.case.is_uniform and why_not(run) is None


def put_off_otherwise(run: CaseRun[Split]) -> object:
    """All passes are alike, it is a schedule, and some stage i runs a weight gradient neither i micro-batches late nor
    after the last input gradient. Where passes differ, nobody can tell."""
    if not run.case.is_uniform:
        return CANNOT_TELL
    m = run.case.n_microbatches
    for stage, order in enumerate(listed(run)):
        n_input = list(accumulate(one.kind == "I" for one in order))
        late = [n - 1 - one.microbatch for one, n in zip(order, n_input, strict=True) if one.kind == "W" and n < m]
        if set(late) - {stage}:
            return why_not(run) is None
    return False


def waits(run: CaseRun[Split]) -> str:
    """How long each stage waits."""
    return "the stages wait for " + ", ".join(f"{idle:g}" for idle in played(run).idle) + " units of time"


def in_words(run: CaseRun[Split]) -> str:
    case = run.case
    times = [
        f"[{', '.join(f'{time:g}' for time in each)}]" for each in (case.forward, case.input_grad, case.weight_grad)
    ]
    return f"zero_bubble({', '.join(times)}, n_microbatches={case.n_microbatches}, memory={case.memory})"


ZERO_BUBBLE = Oracle(
    id="18-zero-bubble",
    call=in_words,
    judge=(is_a_schedule, is_short),
    fact=waits,
    axis="other numbers of stages and micro-batches, and other times",
    diagnose=(
        Hint(
            one_stage_only,
            "Return the orders of all stages: a list with one list of pairs for each stage.",
        ),
        Hint(
            whole_backward,
            "There is no ('B', i) here: the backward pass comes in two entries, ('I', i) and ('W', i).",
        ),
        Hint(
            weight_before_input,
            "A stage may run ('W', i) only after its own ('I', i), so put them in this order: ('I', i) stands before "
            "('W', i) in the list.",
        ),
        Hint(
            holds_forward_passes,
            "A stage runs more forward passes than it has memory for before it goes back. Start with those of 1F1B.",
        ),
        Hint(
            weights_last,
            "The weight gradients come at the very end, and a stage can only free a micro-batch after its ('W', i). "
            "Put them off, but not all of them.",
        ),
        Hint(
            holds_too_much,
            "A stage holds too many micro-batches at once: each counts from its ('F', i) to the end of its ('W', i). "
            "Run an older weight gradient before the forward pass that does not fit.",
        ),
        Hint(
            kind_is("missing"),
            "Every stage runs three passes of every micro-batch: ('F', i), ('I', i) and ('W', i).",
        ),
        Hint(
            kind_is("deadlock"),
            "Stages wait for each other. Begin with an order that can run, such as 1F1B with each ('B', i) replaced by "
            "('I', i), ('W', i), and move weight gradients from there.",
        ),
        Hint(
            seen_with(2, never_apart),
            "Each weight gradient runs right after its input gradient, as in 1F1B, so the stage before waits longer "
            "than it has to. Let later stages put their weight gradients off until they would otherwise be idle.",
        ),
        Hint(
            put_off_otherwise,
            "The schedule runs and fits, but weight gradients stand where stages do not need them. 1F1B leaves stage i "
            "room for i more micro-batches: let it run each weight gradient i micro-batches late, no more and no less.",
        ),
        Hint(
            differs_only,
            "Where all passes take equally long, your order is as short as any. Where stages differ, no fixed rule is "
            "always best. Use labkit.pipeline.run_schedule to play many orders that fit into memory, and return the "
            "shortest.",
        ),
    ),
)
