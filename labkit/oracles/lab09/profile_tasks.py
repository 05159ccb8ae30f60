"""Lab 09: what is right in each of the three tasks on a trace, one property for each; a blank task is not judged.

What the usual mistakes look like stands in profile.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from labkit.exercises.lab09.profile import NOT_ANSWERED, TASKS, Session, steady_events
from labkit.oracles.lab09.traces import (
    by_time,
    idle_us,
    share,
    true_table,
    true_work,
)
from labkit.spec import CaseRun

KEYS = ("kernels", "idle_us", "tensor_core_share")


EXACT_TO = 1e-6


MOST_TIMES = 20
"""The right number of events; the whole trace has some ten times as many. More are not looked at one by one."""


def found_work(got: dict) -> list[list]:
    return sorted(got["work"], key=by_time)


def right_work(run: CaseRun) -> str | None:
    wanted = true_work(run)
    if len(run.got["work"]) > MOST_TIMES * len(wanted):
        return f"found {len(run.got['work']):,} events, and {len(wanted)} are to be found"
    got = found_work(run.got)
    if got == wanted:
        return None
    extra, missing = [one for one in got if one not in wanted], [one for one in wanted if one not in got]
    if not extra and not missing:
        return f"found {len(got)} events, some of them twice; there are {len(wanted)}"
    which = f"it has {_shown(extra[0])}" if extra else f"{_shown(missing[0])} is missing"
    first, last = run.case.n_cold, run.case.n_cold + run.case.n_steps - 1
    return f"found {len(got)} events, and {len(wanted)} were launched in the steps {first} to {last}: {which}"


def _shown(work: list) -> str:
    return f"the {work[0]} {str(work[1])[:44]} at {work[2]:g} µs"


def right_form(run: CaseRun) -> str | None:
    report = run.got["report"]
    if type(report) is not dict or set(report) != set(KEYS):
        return f"it should return a dict with the keys {', '.join(KEYS)}"
    return None


def right_table(run: CaseRun) -> str | None:
    rows, wanted = run.got["report"]["kernels"], true_table(run)
    names = [name for name, _, _ in rows]
    if sorted(names) != sorted(wanted):
        odd = sorted(set(names) ^ set(wanted))
        detail = f"; one of them: {odd[0][:50]}" if odd else ""
        return f"the kernel table has {len(names)} rows, and {len(wanted)} kernels ran{detail}"
    for name, n_calls, total_us in rows:
        if n_calls != wanted[name][0] or not math.isclose(total_us, wanted[name][1], rel_tol=EXACT_TO):
            detail = f"{wanted[name][0]} calls and {wanted[name][1]:g} µs, and the row says {n_calls} and {total_us:g}"
            return f"{name[:50]} has {detail}"
    totals = [total_us for _, _, total_us in rows]
    return None if totals == sorted(totals, reverse=True) else "the rows are not in order: the longest total first"


def right_idle(run: CaseRun) -> str | None:
    got, wanted = run.got["report"]["idle_us"], idle_us(steady_events(run.case, run.tree))
    if math.isclose(got, wanted, rel_tol=EXACT_TO, abs_tol=1e-3):
        return None
    return f"the device was idle for {wanted:g} µs, and idle_us is {got:g}"


def right_share(run: CaseRun) -> str | None:
    got, wanted = run.got["report"]["tensor_core_share"], share(run)
    if math.isclose(got, wanted, rel_tol=EXACT_TO):
        return None
    return f"kernels on tensor cores take {wanted:.4g} of all kernels' time, and tensor_core_share is {got:.4g}"


def right_profile(run: CaseRun) -> str | None:
    case, own = run.case, run.got["own"]
    asked = f"with n_unsteady={case.n_unsteady} and n_active={case.n_active}"
    if own["recorded"] is None:
        return f"{asked} it should return the torch.profiler.profile that recorded the steps"
    wanted = list(range(case.n_unsteady, case.n_unsteady + case.n_active))
    if own["recorded"] != wanted:
        return f"{asked} it recorded the calls {own['recorded']}, and should have recorded {wanted}"
    if own["calls"] != case.n_unsteady + case.n_active:
        return f"{asked} it called step {own['calls']} times; {case.n_unsteady + case.n_active} are needed"
    if not has_warm_up(own["actions"]):
        return f"{asked} the profiler is switched on in the first step that it records"
    return None


def has_warm_up(actions: list[str]) -> bool:
    """Whether the profiler is on, and records nothing, right before it begins to record."""
    begins = next((at for at, action in enumerate(actions) if action.startswith("RECORD")), 0)
    return begins > 0 and actions[begins - 1] == "WARMUP"


Property = Callable[[CaseRun[Session]], str | None]


def is_blank(run: CaseRun[Session], part: str) -> bool:
    return isinstance(run.got[part], str) and run.got[part] == NOT_ANSWERED


def task(part: str, *properties: Property) -> Property:
    """The first of these properties that fails, behind the task's number; of a blank one, nothing."""
    number, function = [*TASKS].index(part) + 1, TASKS[part]

    def holds(run: CaseRun[Session]) -> str | None:
        problems = () if is_blank(run, part) else (one(run) for one in properties)
        problem = next(filter(None, problems), None)
        return problem and f"task {number} of {len(TASKS)}, {function}: {problem}"

    return holds


def all_written(run: CaseRun[Session]) -> str | None:
    blank = [f"task {n} of {len(TASKS)}, {TASKS[part]}" for n, part in enumerate(TASKS, 1) if is_blank(run, part)]
    return f"{blank[0]}: not written yet" if blank else None


def is_next(run: CaseRun[Session], function: str) -> bool:
    """Whether this function is the first blank one, and what is written is right."""
    blank = [name for part, name in TASKS.items() if is_blank(run, part)]
    return blank[:1] == [function] and not any(one(run) for one in RIGHT)


def wrong(part: str, *holds: Property):
    """Whether one of these properties of a part that is written fails or cannot be asked."""

    def found(run: CaseRun[Session]) -> bool:
        if is_blank(run, part):
            return False
        for one in holds:
            try:
                if one(run) is not None:
                    return True
            except Exception:
                # What cannot be read is wrong too, as for the judge.
                return True
        return False

    return found


WORK, TABLE = wrong("work", right_work), wrong("report", right_form, right_table)


RIGHT = (
    task("work", right_work),
    task("report", right_form, right_table, right_idle, right_share),
    task("own", right_profile),
)
