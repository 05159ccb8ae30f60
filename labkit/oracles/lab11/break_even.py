"""Lab 11: what a log of calls costs if it is compiled, by Dynamo's rules and by rules that are read otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labkit.exercises.lab11.break_even import CHANGE, START, Costs, Log
from labkit.oracles.calls import as_call
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Rivals, Tolerance, Tree

DYNAMIC = "any size from 2 on"


@dataclass(frozen=True)
class Rules:
    """How versions come about and how long they last, as Dynamo has it; each field can be read otherwise."""

    each_size: bool = False  # a version for each size
    one_does_not_count: bool = False  # the first size is the first from 2 on
    one_is_plain: bool = False  # a size of 1 is served by the version for all
    compiled_once: bool = False  # nothing is ever compiled again
    survives_start: bool = False  # a new process still has the versions of the last one
    warm_is_free: bool = False
    never_warm: bool = False
    survives_change: bool = False
    change_ends_the_process: bool = False  # what is in memory goes, too
    key_is_the_function: bool = False  # any version on disk serves for any other
    compile_call_is_free: bool = False  # the call that compiles does not also run
    marked: bool = False  # the first version is for all sizes
    first_serves_once: bool = False  # the next call of the same size gets the version for all sizes, too
    cold_is_loaded_too: bool = False  # what is compiled takes the warm time as well


DYNAMOS = Rules()


def totals_ms(log: Sequence[str | int], costs: Costs, rules: Rules = DYNAMOS) -> list[int]:
    """Milliseconds after each call."""
    in_memory: set[object] = set()
    on_disk: set[object] = set()
    spent, found = 0, []
    for event in log:
        if event == START:
            in_memory = in_memory if rules.survives_start else set()
        elif event == CHANGE:
            on_disk = on_disk if rules.survives_change else set()
            in_memory = set() if rules.change_ends_the_process else in_memory
        else:
            added = 0
            version = _version(int(event), in_memory, rules)
            if version not in in_memory:
                in_memory.add(version)
                is_warm = bool(on_disk) if rules.key_is_the_function else version in on_disk
                added = costs.warm_ms if is_warm and not rules.never_warm else costs.cold_ms
                if is_warm and rules.warm_is_free:
                    added = 0
                if not is_warm and rules.cold_is_loaded_too:
                    added += costs.warm_ms
                on_disk.add(version)
            spent += added + (0 if added and rules.compile_call_is_free else costs.compiled_ms)
            found.append(spent)
    return found


def _version(size: int, in_memory: set[object], rules: Rules) -> object:
    """The version that serves a batch of this size."""
    if rules.compiled_once:
        return DYNAMIC
    is_known = size in in_memory and not rules.first_serves_once
    if rules.each_size or (size == 1 and not rules.one_is_plain) or is_known:
        return size
    if rules.marked:
        return DYNAMIC
    others = in_memory - {1} if rules.one_does_not_count else in_memory
    return DYNAMIC if others else size


def break_even(
    totals: Sequence[int], eager_ms: int, for_good: bool = True, strict: bool = False, start: int = 1
) -> int | None:
    """The first call from which on the total stays at or below the eager one, counted from `start`."""
    ahead = [total < eager_ms * n if strict else total <= eager_ms * n for n, total in enumerate(totals, start)]
    if not for_good:
        return ahead.index(True) + start if True in ahead else None
    behind = [n for n, is_ahead in enumerate(ahead, start) if not is_ahead]
    first = max(behind, default=start - 1) + 1
    return first if first < start + len(ahead) else None


def by_rules(run: CaseRun[Log]) -> Tree:
    totals = totals_ms(run.case.log, run.case.costs())
    return {"totals_ms": totals, "break_even": break_even(totals, run.case.eager_ms)}


def read_as(**otherwise: bool) -> Callable[[CaseRun[Log]], object]:
    """Whether the totals are those of one rule read otherwise."""

    def when(run: CaseRun[Log]) -> object:
        totals = totals_ms(run.case.log, run.case.costs(), Rules(**otherwise))
        if totals == run.expected["totals_ms"]:
            return CANNOT_TELL if list(run.got["totals_ms"]) == totals else False
        return list(run.got["totals_ms"]) == totals

    return when


def _break_even_as(other: Callable[[CaseRun[Log]], object]) -> Callable[[CaseRun[Log]], object]:
    def when(run: CaseRun[Log]) -> object:
        if list(run.got["totals_ms"]) != run.expected["totals_ms"]:
            return False
        value = other(run)
        is_it = run.got["break_even"] == value
        return CANNOT_TELL if is_it and value == run.expected["break_even"] else is_it

    return when


def place_in_the_log(run: CaseRun[Log]) -> int | None:
    """Of the call that is asked for, counted from 1 with starts and changes."""
    places = [place for place, event in enumerate(run.case.log, 1) if event not in (START, CHANGE)]
    number = run.expected["break_even"]
    return places[number - 1] if number else None


def called(run: Observation) -> str:
    return as_call("break_even", list(run.case.log))[:-1] + (
        f", costs) with {run.case.eager_ms} ms eager, {run.case.compiled_ms} ms compiled, {run.case.cold_ms} ms cold, "
        f"{run.case.warm_ms} ms warm"
    )


def fact(run: CaseRun[Log]) -> str | None:
    got, expected = list(run.got["totals_ms"]), run.expected["totals_ms"]
    if len(got) != len(expected):
        return f"there are {len(expected)} calls in the log, and {len(got)} totals"
    for number, (one, other) in enumerate(zip(got, expected, strict=True), 1):
        if one != other:
            return f"call {number} is the first whose total is off: by {one - other:+g} ms"
    return None


BREAK_EVEN = Oracle(
    id="11-break-even",
    expect=by_rules,
    tolerance=Tolerance(check_dtype=False),
    call=called,
    places={"totals_ms": "totals in ms after each call", "break_even": "break_even"},
    axis="numbers of starts, changes and sizes, and costs at which compiling never pays",
    fact=fact,
    diagnose=(
        Rivals(
            (
                Hint(
                    read_as(warm_is_free=True),
                    "A version that is found on disk was counted as free. It still has to be loaded: warm_ms, in each "
                    "process once for each version.",
                ),
                Hint(
                    read_as(compiled_once=True),
                    "Recompilations are missing: a second size takes a second version, and so does a size of 1.",
                ),
                Hint(
                    read_as(survives_start=True),
                    "Versions in memory end with their process. After a start each has to be loaded from disk, or "
                    "compiled again.",
                ),
                Hint(
                    read_as(never_warm=True),
                    "A new process was counted as compiling everything anew. A version that is on disk is loaded for "
                    "warm_ms.",
                ),
                Hint(
                    read_as(survives_change=True),
                    "After a change nothing that is on disk fits any more: the next versions are compiled cold.",
                ),
                Hint(
                    read_as(change_ends_the_process=True),
                    "A change makes what is on disk useless. A process that runs keeps what it has in memory.",
                ),
                Hint(
                    read_as(each_size=True),
                    "Each size was compiled for itself. From the second size on, the version for any number of rows "
                    "serves them all (except 1).",
                ),
                Hint(
                    read_as(marked=True),
                    "The version for all sizes was taken from the first call on. Without mark_dynamic the first size "
                    "is compiled for itself.",
                ),
                Hint(
                    read_as(one_is_plain=True),
                    "A batch of 1 row is always compiled for itself, and serves no other size.",
                ),
                Hint(
                    read_as(one_does_not_count=True),
                    "A first batch of 1 row counts as the first size. The next size is another one, so it gets the "
                    "version for all sizes from 2 on.",
                ),
                Hint(
                    read_as(key_is_the_function=True),
                    "What is on disk is one version, not the function: a version for another size is not found there.",
                ),
                Hint(
                    read_as(compile_call_is_free=True),
                    "A call that compiles also runs: its time is cold_ms or warm_ms and compiled_ms.",
                ),
                Hint(
                    read_as(first_serves_once=True),
                    "The next call of the same size needs nothing new: a version for its size is in memory. Only "
                    "another size gets the version for all sizes.",
                ),
                Hint(
                    read_as(cold_is_loaded_too=True),
                    "What has to be compiled takes cold_ms alone; warm_ms is the time of a version that is on disk.",
                ),
            )
        ),
        Hint(
            _break_even_as(lambda run: break_even(run.expected["totals_ms"], run.case.eager_ms, for_good=False)),
            "This is the first call at which compiling is ahead. A recompilation puts it behind again: wanted is the "
            "call from which on it stays ahead until the end of the log.",
        ),
        Hint(
            _break_even_as(lambda run: break_even(run.expected["totals_ms"], run.case.eager_ms, strict=True)),
            "Equal is enough: compiling has paid once its total is at most the eager one.",
        ),
        Hint(
            _break_even_as(lambda run: (run.expected["break_even"] or 1) - 1 if run.expected["break_even"] else None),
            "One too few: calls are counted from 1.",
        ),
        Hint(
            _break_even_as(lambda run: break_even(run.expected["totals_ms"], run.case.eager_ms, start=0)),
            "Calls were counted from 0, also where totals are compared: after the first call, eager mode has spent "
            "eager_ms once.",
        ),
        Hint(
            _break_even_as(place_in_the_log),
            "This is the place of the call in the log. Starts and changes are no calls, and do not count.",
        ),
        Hint(
            _break_even_as(lambda run: run.got["break_even"] if run.expected["break_even"] is None else None),
            "If compiling has not paid by the end of the log, the answer is None.",
        ),
    ),
)
