"""Lab 09: what a call takes by the device's own log, and what the usual ways to mistime it read."""

from __future__ import annotations

import functools
import statistics

import torch

from labkit.exercises.lab09.bench import LAUNCH_S, Timed, function_of, machine_of
from labkit.simdevice import SimDevice
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

N_LOGGED = 200
"""Calls of a function that others lengthen; without them every call takes the same."""
RTOL = 0.035
"""Of a median of 50 calls; the mean and the fastest call are 8 % away from it."""


@functools.lru_cache(maxsize=64)
def logged_ms(case: Timed, cold: bool) -> tuple[float, ...]:
    """How long each call occupied the device, from the log and by no clock or event, sorted. The code is loaded."""
    with SimDevice(machine_of(case)) as sim:
        fn = function_of(case, sim.device)
        flusher = torch.empty(2 * sim.get_device_properties().L2_cache_size, dtype=torch.int8, device=sim.device)
        flusher.zero_()
        fn()
        sim.synchronize()
        n_before = len(sim.trace)
        for _ in range(N_LOGGED if case.jitter else 1):
            if cold:
                flusher.zero_()
            fn()
        kernels = [span for span in sim.trace[n_before:] if span.kind == "kernel"]
    mine = [span for span in kernels if not span.name.startswith("zero")]
    calls = [mine[at : at + case.n_kernels] for at in range(0, len(mine), case.n_kernels)]
    return tuple(sorted(1e3 * (call[-1].end_s - call[0].start_s) for call in calls))


def true_ms(case: Timed) -> float:
    return statistics.median(logged_ms(case, cold=True))


def warm_ms(case: Timed) -> float:
    return statistics.median(logged_ms(case, cold=False))


def close(got_ms: float, wanted_ms: float) -> bool:
    # A method that is right may count a launch beside the kernels.
    return abs(got_ms - wanted_ms) <= RTOL * wanted_ms + 2e3 * LAUNCH_S


def asked_in_time(run: CaseRun) -> str | None:
    return f"a time was asked for too early: {run.got['refused']}" if run.got["refused"] is not None else None


def reads_the_time(run: CaseRun) -> str | None:
    got_ms, wanted_ms = run.got["ms"], true_ms(run.case)
    if isinstance(got_ms, bool) or not isinstance(got_ms, int | float):
        return f"bench should return a number of milliseconds, and returned {type(got_ms).__name__}"
    if close(got_ms, wanted_ms):
        return None
    return f"bench reads {got_ms:.4g} ms, and by the device's own log a call takes {wanted_ms:.4g} ms"


def near(got_ms: float, wanted_ms: float, rtol: float = 0.04) -> bool:
    return abs(got_ms - wanted_ms) <= rtol * wanted_ms


def spoilt_by_first_call(run: CaseRun[Timed]) -> bool:
    """At least half a first call too much, in the reading or in a sum that was divided by the repeats."""
    return run.got["ms"] >= true_ms(run.case) + 0.5 * run.case.first_call_ms / run.case.n_repeats


def is_of_one_call(run: CaseRun[Timed]) -> bool:
    """Whether a single call may have taken this, where others lengthen calls."""
    calls_ms = logged_ms(run.case, True)
    return run.case.jitter > 0 and 0.96 * calls_ms[0] <= run.got["ms"] <= 1.04 * calls_ms[-1]


def flush_and_first_call(run: CaseRun[Timed]) -> object:
    """In one repeat both show; among many, the time of the flush is as good as that of some other call."""
    if run.case.n_repeats > 1:
        return CANNOT_TELL
    return run.got["ms"] > true_ms(run.case) + run.case.first_call_ms + 2 * run.case.one_ms


def from_a_warm_cache(run: CaseRun[Timed]) -> object:
    """A product is held up by arithmetic, whatever is in the cache."""
    if run.case.kind == "product":
        return CANNOT_TELL
    return run.got["ms"] < 0.98 * true_ms(run.case) and near(run.got["ms"], warm_ms(run.case), 0.08)


BENCH = Oracle(
    id="09-bench",
    judge=(asked_in_time, reads_the_time),
    call=lambda run: (
        f"bench(fn, cuda, device, now_s, n_repeats={run.case.n_repeats}): fn launches {run.case.n_kernels} "
        f"kernel{'s' * (run.case.n_kernels > 1)} of {run.case.one_ms:g} ms; the first call of each takes "
        f"{run.case.first_call_ms:g} ms more, the cache is {run.case.cache_gain:g} times as fast as memory, "
        f"jitter {run.case.jitter:.0%}"
    ),
    axis="devices with other first calls, caches and jitter, and numbers of repeats",
    diagnose=(
        Hint(
            lambda run: run.got["refused"] is not None,
            "Events are marks that the device has yet to pass. Call cuda.synchronize() before elapsed_time.",
        ),
        Hint(
            lambda run: near(1e3 * run.got["ms"], true_ms(run.case), 0.1),
            "That is in seconds: elapsed_time tells milliseconds already, and a clock's seconds times 1000 are some.",
        ),
        Hint(
            lambda run: near(1e-3 * run.got["ms"], true_ms(run.case), 0.1),
            "That is in microseconds. elapsed_time tells milliseconds already, and bench returns milliseconds.",
        ),
        Hint(
            lambda run: run.got["ms"] <= 3e3 * LAUNCH_S * run.case.n_kernels,
            "Only the launch was timed: the call returns long before the device is done. Synchronize before the second "
            "reading, or record events.",
        ),
        Hint(
            lambda run: (
                run.case.n_repeats > 1
                and near(run.got["ms"], run.case.n_repeats * statistics.mean(logged_ms(run.case, True)), 0.15)
            ),
            "That is the time of all repeats together: time each call on its own.",
        ),
        Hint(
            flush_and_first_call,
            "More than fn was timed: what overwrites the cache, and the loading of its code. It has to stand before "
            "the first mark.",
        ),
        Hint(
            spoilt_by_first_call,
            "The first call is among what was timed, and it loads the kernel's code. Call fn at least once, and "
            "synchronize, before the first reading.",
        ),
        Hint(
            from_a_warm_cache,
            "The data was still in the cache from the call before. Write over a buffer of twice L2_cache_size bytes "
            "before each repeat.",
        ),
        Hint(
            lambda run: near(run.got["ms"], statistics.mean(logged_ms(run.case, True))),
            "That is the mean, which a few slow calls pull up. Return the median of the repeats.",
        ),
        Hint(
            is_of_one_call,
            "That is the time of some call, or of the fastest: on this device it is luck. Return the median of all "
            "n_repeats.",
        ),
        Hint(
            lambda run: run.got["ms"] > true_ms(run.case),
            "More than fn was timed: the flush, what is queued from before, or part of a first call. Call fn once "
            "unmeasured, and record the first event after the flush, or synchronize before you read the clock.",
        ),
    ),
)
