"""Lab 07: what is true of a prefetcher, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from labkit.exercises.lab07.prefetch import Loading
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance


@once
def takes(run: CaseRun[Loading], depth: float) -> list[float]:
    """put_i = max(put_{i-1} + load_i, take_{i-depth}), take_i = max(put_i, take_{i-1} + step_{i-1})."""
    load_s, step_s = run.tree["load_s"].tolist(), run.tree["step_s"].tolist()
    puts: list[float] = []
    found: list[float] = []
    for i, load in enumerate(load_s):
        is_room = i < depth
        puts.append(max((puts[-1] if puts else 0.0) + load, 0.0 if is_room else found[i - int(depth)]))
        found.append(max(puts[i], found[-1] + step_s[i - 1] if found else 0.0))
    return found


def makespan_s(run: CaseRun[Loading], depth: float) -> float:
    return takes(run, depth)[-1] + run.tree["step_s"].tolist()[-1]


def n_workers(case: Loading) -> int:
    """Little's law: as many batches are under way as are finished in the time that one takes."""
    return math.ceil(case.batch_size * case.sample_ms / case.step_ms)


def n_bytes(case: Loading, workers: int) -> int:
    return workers * case.prefetch_factor * case.batch_size * case.sample_bytes


def expected(run: CaseRun[Loading]) -> dict[str, Any]:
    case = run.case
    names = [f"batch {index}" for index in range(case.n)]
    return {
        "items": names,
        "turned_back_s": 0.0,
        "takes_s": takes(run, case.depth),
        "makespan_s": makespan_s(run, case.depth),
        "ahead": case.depth + 1,
        "left": [],
        "after_break": {"items": names[: case.n_taken], "left": [], "n_loaded": 0},
        "after_error": {
            "items": names[: case.n_taken],
            "error": f"batch {case.n_taken} cannot be read",
            "left": [],
        },
        "not_awaited": [],
        "plan": {"n_workers": n_workers(case), "n_bytes": n_bytes(case, n_workers(case))},
    }


def not_far_ahead(run: CaseRun[Loading]) -> str | None:
    """A queue of `depth`, and one batch in the loader's hand."""
    ahead, most = run.got["ahead"], run.case.depth + 1
    if ahead <= most:
        return None
    return f"{ahead} batches were loaded and waited to be taken; a queue of {run.case.depth} allows {most}"


def stops_loading(run: CaseRun[Loading]) -> str | None:
    """Once the loop has stopped, at most the batch is loaded that the thread was about to begin."""
    n_loaded = run.got["after_break"]["n_loaded"]
    return f"a loop stops early, and {n_loaded} more batches are loaded; one is the most" if n_loaded > 1 else None


def times_of(mistake: Callable[[CaseRun[Loading]], float]) -> Callable[[CaseRun[Loading]], object]:
    """A diagnosis: the makespan is the one that a mistake leads to."""

    def when(run: CaseRun[Loading]) -> object:
        wrong = mistake(run)
        if run.got["makespan_s"] == run.expected["makespan_s"] == wrong:
            return CANNOT_TELL
        return run.got["makespan_s"] == wrong

    return when


def one_after_the_other(run: CaseRun[Loading]) -> float:
    return float(run.tree["load_s"].sum() + run.tree["step_s"].sum())


def plan_is(wrong: Callable[[Loading], int]) -> Callable[[CaseRun[Loading]], object]:
    """A diagnosis: this many workers. CANNOT_TELL where that is right, and the answer too."""

    def when(run: CaseRun[Loading]) -> object:
        found, mistaken, right = run.got["plan"]["n_workers"], wrong(run.case), n_workers(run.case)
        return CANNOT_TELL if found == mistaken == right else found == mistaken

    return when


def bytes_times(factor: Callable[[Loading], int]) -> Callable[[CaseRun[Loading]], object]:
    """A diagnosis: the bytes are right but for this factor."""

    def when(run: CaseRun[Loading]) -> object:
        plan, right = run.got["plan"], run.expected["plan"]
        return plan["n_bytes"] * factor(run.case) == right["n_bytes"] != plan["n_bytes"]

    return when


def leaves(name: str) -> Callable[[CaseRun[Loading]], object]:
    """A thread is left behind there. CANNOT_TELL where nothing had to be waited for."""

    def when(run: CaseRun[Loading]) -> object:
        if run.got["after_break"]["left"] or run.got["after_error"]["left"] or run.got["left"]:
            return bool(run.got[name] if name == "left" else run.got[name]["left"])
        return CANNOT_TELL

    return when


def is_cut_off(found: list[str], wanted: list[str]) -> bool:
    """The first of what is wanted, and not all."""
    return len(found) < len(wanted) and found == wanted[: len(found)]


PREFETCH = Oracle(
    id="07-prefetch",
    expect=expected,
    # How far it was ahead and what it loads after the end have a limit, which is judged below.
    tolerance=lambda run: {"ahead": Tolerance(atol=math.inf), "after_break": {"n_loaded": Tolerance(atol=math.inf)}},
    judge=(not_far_ahead, stops_loading),
    errors={
        "ThreadsHang: the main thread waits for an item": (
            "The loop waits for a batch that never comes, because the loader has ended. Whatever the loader raises has "
            "to go through the queue like a batch, and the loop raises it."
        ),
        "ThreadsHang: the main thread waits for thread": (
            "The loop waits for the loader to end, and the loader for room in the queue. Before you join it, tell it "
            "to stop, and take out a batch so that it can see that."
        ),
    },
    diagnose=(
        Hint(
            lambda run: run.got["turned_back_s"] > 0,
            "The clock was set back. Batches are there in time only if a thread loads them while the loop sleeps.",
        ),
        Hint(
            times_of(one_after_the_other),
            "Loading and training still take turns: the loader has to be a thread that goes on while the loop works.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if makespan_s(run, math.inf) == makespan_s(run, run.case.depth)
                and run.got["ahead"] <= run.case.depth + 1
                else run.got["makespan_s"] == makespan_s(run, math.inf)
            ),
            "The loader runs as far ahead as it likes. With a slow loop all batches would wait in memory: give the "
            "queue a maxsize of depth.",
        ),
        Hint(
            times_of(lambda run: makespan_s(run, run.case.depth + 1)),
            "The queue holds one batch more than depth.",
        ),
        Hint(
            times_of(lambda run: makespan_s(run, max(run.case.depth - 1, 1))),
            "The queue holds one batch fewer than depth. The one that the loader has in its hand is not in the queue.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL if run.got["takes_s"] == run.expected["takes_s"] else not_far_ahead(run) is not None
            ),
            "More batches wait than depth allows: one queue with maxsize=depth, and one batch in the loader's hand.",
        ),
        Hint(
            leaves("after_break"),
            "A loop that stops early leaves the loader behind: it waits for room in a queue that nobody empties. In a "
            "finally, tell it to stop, make room, and join it.",
        ),
        Hint(
            lambda run: bool(run.got["not_awaited"]),
            "A loop that stops while a batch is being loaded goes on without waiting for the loader, which still runs. "
            "Join the thread in the finally, after it was told to stop.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if stops_loading(run) is None
                else run.got["after_break"]["items"] == run.expected["after_break"]["items"]
            ),
            "A loop that stops early waits until the rest of the batches is loaded, which may take hours. Tell the "
            "loader to stop, then take out only what keeps it waiting.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if run.got["after_error"] == run.expected["after_error"]
                else run.got["after_error"]["error"] is not None
                and is_cut_off(run.got["after_error"]["items"], run.expected["after_error"]["items"])
            ),
            "The error overtakes batches that were loaded before it and still wait in the queue. Put it into the queue "
            "behind them.",
        ),
        Hint(
            lambda run: run.got["after_error"]["error"] is None,
            "An error in the loader is swallowed, and the loop ends as if there were no more batches.",
        ),
        Hint(
            plan_is(lambda case: case.batch_size * case.sample_ms // case.step_ms),
            "Rounded down, the workers are a little too slow, and the GPU waits in every step. Round up.",
        ),
        Hint(
            plan_is(lambda case: case.batch_size * case.sample_ms // case.step_ms + 1),
            "Where the step time divides the batch's loading time, just that many workers keep up. Round up, and add "
            "nothing.",
        ),
        Hint(
            plan_is(lambda case: math.ceil(case.sample_ms / case.step_ms)),
            "A worker loads a whole batch, sample by sample: its time is batch_size times that of a sample.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if run.got["plan"] == run.expected["plan"]
                else run.got["plan"]["n_workers"] == run.case.batch_size * run.case.sample_ms / run.case.step_ms
            ),
            "There is no fraction of a worker. Round up.",
        ),
        Hint(
            lambda run: run.got["plan"]["n_bytes"] == n_bytes(run.case, 1) != n_bytes(run.case, n_workers(run.case)),
            "Each worker loads prefetch_factor batches ahead, so the bytes grow with the number of workers.",
        ),
        Hint(
            bytes_times(lambda case: case.prefetch_factor),
            "Each worker loads not one batch ahead, but prefetch_factor of them.",
        ),
        Hint(
            bytes_times(lambda case: case.batch_size),
            "What is loaded ahead are batches: sample_bytes are those of one sample, and a batch has batch_size.",
        ),
    ),
    call=lambda run: (
        f"prefetch(load, n={run.case.n}, depth={run.case.depth}, clock), and loader_plan({run.case.sample_ms}, "
        f"{run.case.batch_size}, {run.case.step_ms}, {run.case.prefetch_factor}, {run.case.sample_bytes})"
    ),
    places={
        "items": "batches",
        "turned_back_s": "seconds by which the clock was set back",
        "takes_s": "times at which the batches were there (seconds)",
        "makespan_s": "time of the whole epoch (seconds)",
        "left": "threads left behind",
        "after_break.left": "threads left behind by a loop that stops early",
        "after_break.items": "batches of a loop that stops early",
        "not_awaited": "threads that still load when the generator has been closed",
        "after_error.left": "threads left behind after an error",
        "after_error.error": "error that reaches the loop",
        "after_error.items": "batches before the error",
        "plan.n_workers": "number of workers",
        "plan.n_bytes": "number of bytes",
    },
    axis="other times, deeper queues, and loops that stop at once",
)
