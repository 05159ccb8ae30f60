"""Lab 09: what is true of a trace, and what the usual mistakes make of it. Nothing is judged here."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

from labkit.exercises.lab09.profile import ON_DEVICE, Session, identity, recording_of, steady_events
from labkit.exercises.lab09.traces import COMPUTE, TENSOR_CORE_MARKS, as_events
from labkit.simdevice import Span, busy_s
from labkit.spec import CaseRun


def true_work(run: CaseRun[Session]) -> list[list]:
    """By construction: the work of the steps that count. In the order of time."""
    return sorted(launched_from(run, run.case.n_cold), key=by_time)


def launched_from(run: CaseRun[Session], step: int) -> list[list]:
    """The work of this step and of all behind it."""
    return [
        [one.op.cat, one.op.name, one.start_us] for one in recording_of(run.case, run.tree).work if one.step >= step
    ]


def launched_since(run: CaseRun[Session]) -> list[list]:
    """The right work, and what was launched after the last step."""
    after = recording_of(run.case, run.tree).after
    return [*launched_from(run, run.case.n_cold), *([one.op.cat, one.op.name, one.start_us] for one in after)]


def of_one_digit(run: CaseRun[Session]) -> list[list]:
    """The right work, without that of steps whose number has two digits."""
    case = run.case
    steps = range(case.n_cold, min(10, case.n_cold + case.n_steps))
    return [[one.op.cat, one.op.name, one.start_us] for one in recording_of(case, run.tree).work if one.step in steps]


def by_time(work: list) -> tuple:
    return work[2], work[0], work[1]


def true_table(run: CaseRun[Session]) -> dict[str, tuple[int, float]]:
    """Calls and microseconds by the name of a kernel."""
    return table([one for one in steady_events(run.case, run.tree) if one["cat"] == "kernel"])


def table(events: Sequence[dict]) -> dict[str, tuple[int, float]]:
    times = defaultdict(list)
    for one in events:
        times[one["name"]].append(one["dur"])
    return {name: (len(all_us), math.fsum(all_us)) for name, all_us in times.items()}


def window_us(events: Sequence[dict]) -> float:
    return max(one["ts"] + one["dur"] for one in events) - min(one["ts"] for one in events)


def idle_us(events: Sequence[dict]) -> float:
    """The window without what the simulated device's own busy_s counts."""
    # In microseconds throughout, which busy_s does not mind: whole eighths of them add up exactly.
    spans = [Span(0, one["name"], one["ts"], one["ts"] + one["dur"]) for one in events]
    return window_us(events) - busy_s(spans, "kernel")


def share(run: CaseRun[Session], of: str = "time") -> float:
    """Of tensor cores in the time of kernels, in their calls, or in their names."""
    weight = {"time": lambda row: row[1], "calls": lambda row: row[0], "names": lambda row: 1}[of]
    rows = true_table(run)
    with_tensor_cores = [row for name, row in rows.items() if any(mark in name for mark in TENSOR_CORE_MARKS)]
    return math.fsum(map(weight, with_tensor_cores)) / math.fsum(map(weight, rows.values()))


def share_by_each_mark(run: CaseRun[Session]) -> float:
    """Of tensor cores, where a name with two marks counts twice."""
    rows = true_table(run)
    summed = [us for mark in TENSOR_CORE_MARKS for name, (_, us) in rows.items() if mark in name]
    return math.fsum(summed) / math.fsum(us for _, us in rows.values())


def share_in_any_case(run: CaseRun[Session]) -> float:
    """Of tensor cores in the time of kernels, where capital letters count as small ones."""
    rows = true_table(run)
    with_a_mark = [us for name, (_, us) in rows.items() if any(mark in name.lower() for mark in TENSOR_CORE_MARKS)]
    return math.fsum(with_a_mark) / math.fsum(us for _, us in rows.values())


def on_device(run: CaseRun[Session]) -> list[list]:
    """All steps."""
    return [identity(one) for one in as_events(recording_of(run.case, run.tree)) if one.get("cat") in ON_DEVICE]


def after_the_step_began(run: CaseRun[Session]) -> list[list]:
    """By the device's own time, not by that of the launch."""
    begin_us = recording_of(run.case, run.tree).steps[run.case.n_cold][0]
    return [one for one in on_device(run) if one[2] >= begin_us]


def launched_by(run: CaseRun[Session], thread: int) -> list[list]:
    work = [
        one for one in recording_of(run.case, run.tree).work if one.step >= run.case.n_cold and one.op.thread == thread
    ]
    return [[one.op.cat, one.op.name, one.start_us] for one in work]


def kernels_in(events: list[dict]) -> list[dict]:
    return [one for one in events if one["cat"] == "kernel"]


def summed_us(events: list[dict]) -> float:
    return math.fsum(one["dur"] for one in events)


def without_overlap(events: list[dict]) -> float:
    return window_us(events) - summed_us(events)


def gaps_to_the_one_before(events: list[dict]) -> float:
    """Gaps between neighbours in the order of their starts, whatever an earlier one still runs."""
    ordered = sorted(events, key=lambda one: one["ts"])
    pairs = itertools.pairwise(ordered)
    return math.fsum(max(0.0, later["ts"] - earlier["ts"] - earlier["dur"]) for earlier, later in pairs)


def on_the_main_stream(events: list[dict]) -> list[dict]:
    return [one for one in events if one["args"]["stream"] == COMPUTE]


def share_of_window(run: CaseRun[Session]) -> float:
    return (
        share(run)
        * summed_us(kernels_in(steady_events(run.case, run.tree)))
        / window_us(steady_events(run.case, run.tree))
    )


def share_of_all_work(run: CaseRun[Session]) -> float:
    events = steady_events(run.case, run.tree)
    return share(run) * summed_us(kernels_in(events)) / summed_us(events)
