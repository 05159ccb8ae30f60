"""Lab 09: what each job takes by the device's own log, and what the usual ways to place events read."""

from __future__ import annotations

import functools
import itertools
from collections import Counter

from labkit.exercises.lab09.events import LAUNCH_S, MACHINE, STREAM_OF, Jobs, make_jobs
from labkit.simdevice import Command, SimDevice, Span, from_plain
from labkit.simdevice.clock import Clock
from labkit.spec import CaseRun, Hint, Oracle, Tree

ATOL_MS = 1.1e3 * LAUNCH_S
"""On an idle stream the first event comes before the launch of what follows it."""


@functools.lru_cache(maxsize=64)
def logged(case: Jobs) -> tuple[tuple[Span, ...], ...]:
    """The spans of each job, issued one after the other and never waited for; no event is involved."""
    with SimDevice(MACHINE) as sim:
        jobs = make_jobs(case, sim)
        sim.synchronize()
        n_before = len(sim.trace)
        for run, stream in jobs:
            with sim.stream(stream):
                run()
        spans = sim.trace[n_before:]
    # The trace is in the order of issue.
    ends = itertools.accumulate(job.n_calls for job in case.jobs)
    return tuple(spans[end - job.n_calls : end] for job, end in zip(case.jobs, ends, strict=True))


def true_ms(case: Jobs) -> list[float]:
    return [1e3 * (spans[-1].end_s - spans[0].start_s) for spans in logged(case)]


def since_the_start_ms(case: Jobs) -> list[float]:
    """What one event at the very start, for all jobs, makes of it."""
    return [1e3 * (spans[-1].end_s - logged(case)[0][0].start_s) for spans in logged(case)]


def since_the_job_before_ms(case: Jobs) -> list[float]:
    """What the end of the job before, in the list, makes of it as a start."""
    ends_ms = [1e3 * spans[-1].end_s for spans in logged(case)]
    return true_ms(case)[:1] + [end - before for before, end in itertools.pairwise(ends_ms)]


def off(got: list[float], wanted: list[float], atol_ms: float = ATOL_MS) -> list[int]:
    """Which of the times are not these."""
    return [at for at, pair in enumerate(zip(got, wanted, strict=True)) if not abs(pair[0] - pair[1]) <= atol_ms]


def issued(got: Tree) -> list[Command]:
    return list(from_plain(got["commands"]))


def work(got: Tree) -> list[tuple[str, int]]:
    """What ran, and on which stream."""
    return [(one.name, one.stream) for one in issued(got) if one.kind in ("kernel", "copy")]


def wanted_work(case: Jobs) -> list[tuple[str, int]]:
    return [
        (span.name, STREAM_OF[job.kind]) for job, spans in zip(case.jobs, logged(case), strict=True) for span in spans
    ]


def n_waits_between(got: Tree) -> int:
    """How often the host waited before the last job was issued."""
    commands = issued(got)
    last = max(at for at, one in enumerate(commands) if one.kind in ("kernel", "copy"))
    return sum(one.kind == "sync" or one.blocking for one in commands[:last])


def n_held_up(run: CaseRun[Jobs]) -> int:
    """How many kernels and copies begin later, after the first, than their own streams let them."""
    clock = Clock(MACHINE)
    for command in issued(run.got):
        clock.run(command)
    began_s = [span.start_s for span in clock.spans if span.kind != "host waits"]
    could_s = [span.start_s for job in logged(run.case) for span in job]
    late_s = [began - could for began, could in zip(began_s, could_s, strict=True)]
    # Each launch may come a little later.
    return sum(late - late_s[0] > at * 1e-3 * ATOL_MS for at, late in enumerate(late_s))


def asked_in_time(run: CaseRun) -> str | None:
    return f"a time was asked for too early: {run.got['refused']}" if run.got["refused"] is not None else None


def each_once_on_its_stream(run: CaseRun) -> str | None:
    got, wanted = work(run.got), wanted_work(run.case)
    if got == wanted:
        return None
    if sorted(name for name, _ in got) != sorted(name for name, _ in wanted):
        return f"{len(got)} kernels and copies were issued, and the jobs have {len(wanted)}: call each job once"
    return "the jobs did not run on their streams, in the order of the list"


def never_waits_between(run: CaseRun) -> str | None:
    n = n_waits_between(run.got)
    return f"the host waited {n} time{'s' * (n > 1)} before the last job was issued" if n else None


def side_by_side(run: CaseRun) -> str | None:
    n = n_held_up(run)
    return f"{n} kernels and copies begin later than they could: a stream waited for another" if n else None


def reads_the_times(run: CaseRun) -> str | None:
    got, wanted = run.got["ms"], true_ms(run.case)
    if not isinstance(got, list) or len(got) != len(wanted):
        return f"time_jobs should return a list of {len(wanted)} times in milliseconds"
    wrong = off(got, wanted)
    if not wrong:
        return None
    at = wrong[0]
    return f"job {at} reads {got[at]:.4g} ms, and by the device's own log it takes {wanted[at]:.4g} ms"


def leaves_the_stream_as_it_was(run: CaseRun) -> str | None:
    return None if run.got["stream_left"] is False else "after the call another stream is current than before"


def all_as_the_last(run: CaseRun[Jobs]) -> bool:
    """Whether every job reads what the last one takes, which others do not."""
    wanted = true_ms(run.case)
    as_the_last = wanted[-1:] * len(wanted)
    return not off(run.got["ms"], as_the_last) and bool(off(as_the_last, wanted))


def begin_elsewhere(run: CaseRun[Jobs]) -> bool:
    """Whether the readings begin with another job, or before their own has its turn."""
    got, loose_ms = run.got["ms"], 3 * len(run.case.jobs) * ATOL_MS
    if any(not off(got, wrong(run.case), loose_ms) for wrong in (since_the_start_ms, since_the_job_before_ms)):
        return True
    return any(ms > 1.2 * true for ms, true in zip(got, true_ms(run.case), strict=True))


def n_records(got: Tree) -> Counter[int]:
    """By stream."""
    return Counter(one.stream for one in issued(got) if one.kind == "record")


def too_few_records(run: CaseRun[Jobs]) -> bool:
    """Whether a stream has fewer marks than between and around its jobs, and another has more than that."""
    n_jobs, found = Counter(STREAM_OF[job.kind] for job in run.case.jobs), n_records(run.got)
    fewer = any(found[stream] <= n for stream, n in n_jobs.items())
    return fewer and any(n > 2 * n_jobs[stream] for stream, n in found.items())


EVENTS = Oracle(
    id="09-events",
    judge=(
        asked_in_time,
        each_once_on_its_stream,
        never_waits_between,
        side_by_side,
        reads_the_times,
        leaves_the_stream_as_it_was,
    ),
    call=lambda run: (
        "time_jobs(["
        + ", ".join(f"{job.n_calls} x {job.kind} on {job.n:,} numbers" for job in run.case.jobs)
        + "], cuda)"
    ),
    axis="orders and lengths of jobs on the streams",
    diagnose=(
        Hint(
            lambda run: run.got["refused"] is not None and any(one.kind == "sync" for one in issued(run.got)),
            "Waiting for one stream says nothing about the others: call cuda.synchronize(), or wait for every job's "
            "last event.",
        ),
        Hint(
            lambda run: run.got["refused"] is not None,
            "Events are marks that the device has yet to pass. When all jobs are issued, call cuda.synchronize(), and "
            "only then elapsed_time.",
        ),
        Hint(
            lambda run: {stream for _, stream in work(run.got)} != {stream for _, stream in wanted_work(run.case)},
            "A job runs on the stream that is current when it is called: call it under `with cuda.stream(stream):`.",
        ),
        Hint(
            lambda run: (
                work(run.got) != wanted_work(run.case) and sorted(work(run.got)) == sorted(wanted_work(run.case))
            ),
            "Each job runs on its stream, but not in the order of the list: issue them in one loop over `jobs`.",
        ),
        Hint(
            lambda run: n_waits_between(run.got) > 0,
            "Waiting between the jobs takes away what streams are for. Record all events first, wait once at the end, "
            "then read.",
        ),
        Hint(
            lambda run: work(run.got) == wanted_work(run.case) and n_held_up(run) > 0,
            "The jobs run one after the other: leave out wait_event and wait_stream, so that the streams run side by "
            "side.",
        ),
        Hint(
            lambda run: (
                bool(off(run.got["ms"], true_ms(run.case)))
                and not off(sorted(run.got["ms"]), sorted(true_ms(run.case)))
            ),
            "These are the right times in the wrong order: return them in the order of `jobs`.",
        ),
        Hint(
            lambda run: not off([-ms for ms in run.got["ms"]], true_ms(run.case)),
            "start.elapsed_time(end) is the time from start to end; the other way round it is negative.",
        ),
        Hint(
            lambda run: not off([1e3 * ms for ms in run.got["ms"]], true_ms(run.case)),
            "elapsed_time tells milliseconds already.",
        ),
        Hint(
            lambda run: not n_records(run.got),
            "No event was recorded, and the host's clock sees only the launches: record an event before each job and "
            "one after it, on its stream.",
        ),
        Hint(
            lambda run: (
                n_records(run.got).keys() < {stream for _, stream in wanted_work(run.case)} or too_few_records(run)
            ),
            "An event marks a place in one stream, and these are not all in the stream of their job. Record both "
            "inside `with cuda.stream(stream):`, or give record the stream.",
        ),
        Hint(
            all_as_the_last,
            "Every job reads the time of the last one: all share one pair of events, and record moves an event to a "
            "new place. Make two events for each job.",
        ),
        Hint(
            begin_elsewhere,
            "These times do not begin with their jobs. Each job needs a first event of its own, recorded on its stream "
            "right before it is issued.",
        ),
        Hint(
            lambda run: all(ms < 1.2 * ATOL_MS for ms in run.got["ms"]),
            "There is nothing between these two events: record one before the job is issued and one after it.",
        ),
        Hint(
            lambda run: run.got["stream_left"] is True,
            "set_stream changes the current stream for all that follows, also after your function has returned. `with "
            "cuda.stream(stream):` brings the old one back.",
        ),
    ),
)
