"""Lab 18: what the orders of all exercises share: read as passes, played, and said to be no schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from labkit.exercises.lab18.orders import BadEntry, Pipe, one_stage_each, play
from labkit.oracles.hints import Condition, once
from labkit.pipeline import Action, ScheduleError, ScheduleRun, in_a_strip
from labkit.pipeline import in_words as in_passes_words
from labkit.spec import CANNOT_TELL, CaseRun, Hint

Orders = list[list[Action]]
TINY = 1e-9


@once
def listed(run: CaseRun[Pipe], what: str) -> Orders:
    """The passes of each stage, as the function `what` returned them. Raises BadEntry."""
    return one_stage_each(run.got["orders"], what)


@once
def played(run: CaseRun[Pipe], what: str) -> ScheduleRun:
    """Raises BadEntry and ScheduleError."""
    return play(listed(run, what), run.case)


def is_a_schedule(what: str) -> Callable[[CaseRun[Pipe]], str | None]:
    """A judge: every stage runs every micro-batch forward and backward once, and no pass waits for ever."""

    def judge(run: CaseRun[Pipe]) -> str | None:
        try:
            played(run, what)
        except (BadEntry, ScheduleError) as error:
            return str(error)
        return None

    judge.__doc__ = is_a_schedule.__doc__
    return judge


@once
def why_not(run: CaseRun[Pipe], what: str) -> ScheduleError | None:
    """Why it is no schedule; None for one that is. Raises BadEntry."""
    try:
        played(run, what)
    except ScheduleError as error:
        return error
    return None


def kind_is(what: str, *kinds: str) -> Condition:
    """The orders are no schedule, for this reason."""
    return lambda run: (error := why_not(run, what)) is not None and error.kind in kinds


def deadlock(what: str) -> Callable[[CaseRun[Pipe]], object]:
    """Stages wait for one another. With one stage or one micro-batch they cannot."""
    return lambda run: CANNOT_TELL if is_alone(run.case) else kind_is(what, "deadlock")(run)


def is_alone(case: Pipe) -> bool:
    """There is one stage or one micro-batch: what concerns several cannot be seen."""
    return case.n_stages == 1 or case.n_microbatches == 1


def no_entries(what: str) -> Condition:
    """What was returned cannot be read as passes."""

    def when(run: CaseRun[Pipe]) -> bool:
        try:
            listed(run, what)
        except BadEntry:
            return True
        return False

    return when


def forward_first(order: Sequence[Action]) -> int:
    """How many forward passes stand before the first backward pass."""
    return next((n for n, action in enumerate(order) if action.kind != "F"), len(order))


def starts_with(
    what: str, wrong: Callable[[Pipe, int], int], right: Callable[[Pipe, int], int]
) -> Callable[[CaseRun[Pipe]], object]:
    """The condition that on every stage so many forward passes come first, as the mistake has it. Where it has as many
    as there should be, nobody can tell."""

    def when(run: CaseRun[Pipe]) -> object:
        stages = range(run.case.n_stages)
        mistake = [wrong(run.case, stage) for stage in stages]
        if mistake == [right(run.case, stage) for stage in stages]:
            return CANNOT_TELL
        return [forward_first(order) for order in listed(run, what)] == mistake

    return when


def counted_from_one(what: str) -> Condition:
    """Micro-batches 1 to m are named, and no 0."""

    def when(run: CaseRun[Pipe]) -> bool:
        named = {action.microbatch for order in listed(run, what) for action in order}
        return named == set(range(1, run.case.n_microbatches + 1))

    return when


def as_many_as_stages(what: str) -> Callable[[CaseRun[Pipe]], object]:
    """Every stage names micro-batches 0 to n_stages - 1. Where there are as many as stages, it should."""

    def when(run: CaseRun[Pipe]) -> object:
        if run.case.n_microbatches == run.case.n_stages:
            return CANNOT_TELL
        named = [{action.microbatch for action in order} for order in listed(run, what)]
        return all(one == set(range(run.case.n_stages)) for one in named)

    return when


def all_the_way_one_by_one(what: str) -> Callable[[CaseRun[Pipe]], object]:
    """Every stage turns each micro-batch round before the next one. Of one micro-batch nobody can tell."""

    def when(run: CaseRun[Pipe]) -> object:
        if is_alone(run.case):
            return CANNOT_TELL
        return all(
            [action.kind for action in order] == ["F", "B"] * run.case.n_microbatches for order in listed(run, what)
        )

    return when


def orders_differ(what: str, kind: str) -> Callable[[CaseRun[Pipe]], object]:
    """Stages take the micro-batches' passes of this kind in different orders."""

    def when(run: CaseRun[Pipe]) -> object:
        if is_alone(run.case):
            return CANNOT_TELL
        ways = {tuple(a.microbatch for a in order if a.kind == kind) for order in listed(run, what)}
        return len(ways) > 1

    return when


def no_schedule_hints(what: str) -> tuple[Hint, ...]:
    """What is said of orders that are no schedule for a reason that needs no more than the reason."""
    return (
        Hint(
            no_entries(what),
            "Return a list of pairs for the one stage that is asked for. A pair is a letter and the number of a "
            "micro-batch, such as ('F', 3).",
        ),
        Hint(
            counted_from_one(what),
            "The micro-batches are numbered from 0: the last one is n_microbatches - 1.",
        ),
        Hint(
            as_many_as_stages(what),
            "There are as many micro-batches in these lists as there are stages. Every stage runs all n_microbatches.",
        ),
        Hint(
            kind_is(what, "twice"),
            "A pass is listed twice on one stage. Every stage runs every micro-batch forward once and backward once.",
        ),
        Hint(
            kind_is(what, "order"),
            "A stage can only go back through a micro-batch that it has gone forward through: its ('F', i) comes "
            "before its ('B', i) in the list.",
        ),
    )


def missing_passes(what: str) -> Hint:
    """Of orders that lack a pass, where nothing more is known of which."""
    return Hint(
        kind_is(what, "missing"),
        "A pass is in no list. Every stage runs every micro-batch forward once and backward once: count both in its "
        "list. There are n_microbatches of them, from 0 on.",
    )


def strip(what: str) -> Callable[[CaseRun[Pipe]], str | None]:
    """What ran when, as far as it could."""

    def shown(run: CaseRun[Pipe]) -> str | None:
        try:
            return in_a_strip(played(run, what).events, run.case.n_stages)
        except ScheduleError as error:
            return in_a_strip(error.so_far, run.case.n_stages, error.stuck) if error.stuck else None

    return shown


def longest_wait(played: ScheduleRun, names: str = "stage") -> str | None:
    """Where a rank waits longest between two of its passes, for those whose schedule only takes too long."""
    waits = [
        (after.start - before.end, -rank, after.action)
        for rank, events in enumerate(played.by_rank)
        for before, after in pairwise(events)
    ]
    wait, place, action = max(waits, key=lambda one: one[:2], default=(0.0, 0, None))
    if wait < TINY:
        return None
    return f"the longest wait inside the step: {names} {-place} waits {wait:g} units before {in_passes_words(action)}"


def in_words(what: str) -> Callable[[CaseRun[Pipe]], str]:
    """How a case was called."""

    def call(run: CaseRun[Pipe]) -> str:
        case = run.case
        text = f"{what}(stage, n_stages={case.n_stages}, n_microbatches={case.n_microbatches}) for every stage"
        if case.forward or case.backward:
            backward = case.backward or tuple(2 * time for time in case.forward)
            text += f", whose passes take {_times(case.forward)} forward and {_times(backward)} backward"
        if case.transfer:
            text += ("," if case.forward else ", where") + f" a message {case.transfer:g}"
        return text

    return call


def _times(times: Sequence[float]) -> str:
    return ", ".join(f"{time:g}" for time in times)
