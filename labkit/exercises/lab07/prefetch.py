"""Lab 07: load the next batches while the GPU works on this one, and how many workers that takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from labkit.clock import VirtualClock
from labkit.spec import Answer, Case, Exercise

TICK_S = 1 / 64
"""All times are multiples of it, so that their sums are exact."""
PATIENCE_S = 1000.0


@dataclass(frozen=True)
class Loading(Case):
    """n batches through a queue of `depth`, whose loop stops after n_taken in a second run. Then a loader of
    `batch_size` samples of sample_ms each, for steps of step_ms.
    """

    n: int
    depth: int
    n_taken: int = 2
    batch_size: int = 32
    sample_ms: int = 10
    step_ms: int = 100
    prefetch_factor: int = 2
    sample_bytes: int = 150_528


def times(case: Loading, gen: torch.Generator) -> dict[str, Any]:
    """load_s and step_s of each batch, some of them long."""

    def drawn() -> torch.Tensor:
        ticks = torch.randint(1, 64, (case.n,), generator=gen)
        return ticks.double() * TICK_S * (1 + 7 * (torch.rand(case.n, generator=gen) < 0.2))

    return {"load_s": drawn(), "step_s": drawn()}


def drive(ans, case: Loading, tree: dict, stage) -> dict[str, Any]:
    """turned_back_s: the most by which the clock said less than before, which it never does by itself.
    takes_s: when each batch was there; makespan_s: when the last step had ended; ahead: the most batches that were
    loaded and not taken. after_break and after_error: what a loop got that stops early, or whose batch n_taken cannot
    be loaded and whose first step is long, and the threads that it leaves behind; after_break also how many batches
    were loaded once the loop had stopped. not_awaited: the threads that have not ended when a loop has stopped while a
    batch was being loaded. plan: what `loader_plan` says.
    """
    load_s, step_s = tree["load_s"].tolist(), tree["step_s"].tolist()
    loaded: list[int] = []
    read_s: list[float] = []

    def loader(clock: VirtualClock, broken: int | None = None) -> Callable[[int], str]:
        loaded.clear()

        def load(index: int) -> str:
            read_s.append(clock.now_s)
            clock.sleep(load_s[index], f"load {index}")
            read_s.append(clock.now_s)
            if index == broken:
                raise ValueError(f"batch {index} cannot be read")
            loaded.append(index)
            return f"batch {index}"

        return load

    with VirtualClock() as clock:
        items, takes_s, ahead = [], [], 0
        for item in ans.prefetch(loader(clock), case.n, case.depth, clock):
            items.append(item)
            takes_s.append(clock.now_s)
            read_s.append(clock.now_s)
            clock.sleep(step_s[len(items) - 1], f"step {len(items) - 1}")
            ahead = max(ahead, len(loaded) - len(items))
        makespan_s, left = clock.now_s, clock.left_over(PATIENCE_S)
        turned_back_s = max([0.0, *(before - after for before, after in pairwise(read_s))])
    with VirtualClock() as clock:
        batches = ans.prefetch(loader(clock), case.n, case.depth, clock)
        taken = [next(batches) for _ in range(case.n_taken)]
        # By then the queue is full, and the loader waits for room.
        clock.sleep(PATIENCE_S)
        n_loaded = len(loaded)
        batches.close()
        behind = clock.left_over(PATIENCE_S)
        after_break = {"items": taken, "left": behind, "n_loaded": len(loaded) - n_loaded}
    with VirtualClock() as clock:
        after_error: dict[str, Any] = {"items": [], "error": None}
        try:
            for item in ans.prefetch(loader(clock, broken=case.n_taken), case.n, case.depth, clock):
                after_error["items"].append(item)
                clock.sleep(PATIENCE_S)
        except ValueError as error:
            after_error["error"] = str(error)
        after_error["left"] = clock.left_over(PATIENCE_S)
    with VirtualClock() as clock:
        batches = ans.prefetch(loader(clock), case.n, case.depth, clock)
        next(batches)
        batches.close()
        not_awaited = clock.left_over()
    n_workers, n_bytes = ans.loader_plan(
        case.sample_ms, case.batch_size, case.step_ms, case.prefetch_factor, case.sample_bytes
    )
    return {
        "items": items,
        "turned_back_s": turned_back_s,
        "takes_s": takes_s,
        "makespan_s": makespan_s,
        "ahead": ahead,
        "left": left,
        "after_break": after_break,
        "after_error": after_error,
        "not_awaited": not_awaited,
        "plan": {"n_workers": n_workers, "n_bytes": n_bytes},
    }


PREFETCH = Exercise(
    id="07-prefetch",
    title="Load while the GPU works",
    points=0.4,
    minutes=25,
    difficulty=3,
    answers=(Answer("prefetch"), Answer("loader_plan")),
    public=(
        Loading(12, 2),
        Loading(20, 1, n_taken=5, sample_ms=8, step_ms=60),
        Loading(16, 4, n_taken=0, batch_size=16, sample_ms=10, step_ms=40, prefetch_factor=4),
        Loading(5, 8, n_taken=1, sample_ms=1, step_ms=90),
    ),
    inputs=times,
    drive=drive,
    optional=True,
)
