"""Lab 09: what is asked, given and run for the figures of PyTorch's caching allocator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from labkit.spec import Answer, Case, Exercise, KiB, MiB

Event = tuple[str, int, int]
"""("malloc", ticket, bytes), ("free", ticket, 0) or ("empty_cache", 0, 0)."""


@dataclass(frozen=True)
class AllocationTrace(Case):
    """A trace with n_events that are drawn, and a training step whose tensors are all freed at its end.

    kind: "sizes" only allocates, around the sizes where a rule changes; "small" and "large" keep to one pool and begin
    with TELLING, "mixed" takes both and empties the cache now and then; only with "mixed" the slow-down is asked
    for.
    """

    kind: Literal["sizes", "small", "large", "mixed"] = "mixed"
    n_events: int = 60
    step_ms: float = 120.0
    malloc_ms: float = 0.4
    free_ms: float = 0.9


FULL = (8, 6, 6)
"""Blocks that fill a segment, in units: of 1 MiB in the large pool, of a little less than 0.1 MiB in the small one."""
UNIT = {"small": 204 * 512, "large": MiB}
TELLING = (
    # Only the best fit leaves room for both of the last two.
    *(("malloc", -1 - n, units) for n, units in enumerate(FULL)),
    *(("free", -1, 0), ("free", -3, 0), ("malloc", -4, 6), ("malloc", -5, 8)),
    # In another segment two free blocks make one, or the third request finds no room.
    *(("malloc", -6 - n, units) for n, units in enumerate(reversed(FULL))),
    *(("free", -6, 0), ("free", -7, 0), ("malloc", -9, 10), ("free", -9, 0)),
    # Two segments with a free block of the same size: which one is taken decides whether the last request finds room.
    *(("malloc", -10 - n, units) for n, units in enumerate((6, 6, *reversed(FULL)))),
    *(("free", -10, 0), ("free", -12, 0), ("malloc", -15, 6), ("free", -13, 0), ("malloc", -16, 9)),
    # Two free blocks of the same size in one segment: if the first is taken, the second joins what lies behind it.
    # The request before them fills what is left above.
    *(("malloc", -19 - n, units) for n, units in enumerate((3, 3, 8, 3, 6))),
    *(("free", -20, 0), ("free", -22, 0), ("malloc", -24, 3), ("free", -23, 0), ("malloc", -25, 9)),
)
"""Events with sizes in units, where the usual mistakes part from the rules and from each other."""
SMALL_REST = (("malloc", -17, MiB), ("malloc", -18, MiB - 512))
"""A small segment of which 512 bytes are left."""


def trace_inputs(case: AllocationTrace, gen: torch.Generator) -> dict[str, object]:
    """trace: events; before and step: those of a program that then repeats its step."""
    draw = _Draw(gen)
    # The step's second tensor fills what the set-up's first leaves of its 20 MiB: without a set-up, one segment more.
    sizes_before = [2 * MiB, *(2 * MiB * draw.between(10, 15) for _ in range(2))]
    before = [["malloc", -1 - n, size] for n, size in enumerate(sizes_before)]
    sizes = [2 * MiB * draw.between(10, 15), draw.between(17 * MiB + 1, 18 * MiB)]
    sizes += [draw.size("large" if draw.chance(0.7) else "small") for _ in range(draw.between(8, 14))]
    step = [["malloc", n, size] for n, size in enumerate(sizes)]
    step += [["free", n, 0] for n in draw.shuffled(len(sizes))]
    return {"trace": _trace(case, draw), "before": before, "step": step}


class _Draw:
    """Whole numbers, chances and sizes from a generator."""

    def __init__(self, gen: torch.Generator) -> None:
        self._gen = gen

    def between(self, least: int, most: int) -> int:
        return int(torch.randint(least, most + 1, (), generator=self._gen))

    def chance(self, p: float) -> bool:
        return float(torch.rand((), generator=self._gen)) < p

    def shuffled(self, n: int) -> list[int]:
        return torch.randperm(n, generator=self._gen).tolist()

    def size(self, kind: str) -> int:
        """Small: up to 1 MiB. Large: from there to 40 MiB, those below 10 MiB as often as those above."""
        if kind == "small":
            return self.between(1, MiB)
        return self.between(MiB + 1, 10 * MiB - 1) if self.chance(0.5) else self.between(10 * MiB, 40 * MiB)


def _trace(case: AllocationTrace, draw: _Draw) -> list[list]:
    if case.kind == "sizes":
        # The two limits come first, where no block is free that would take them.
        first = [10 * MiB, MiB]
        edges = [512, 1, 513, MiB - 1, MiB + 1, 10 * MiB - 512, 10 * MiB + 1, 19 * MiB + 1, 21 * MiB]
        edges += [draw.size(kind) for kind in ("small", "large", "large")]
        sizes = first + [edges[at] for at in draw.shuffled(len(edges))]
        return [["malloc", n, size] for n, size in enumerate(sizes)]
    events = [list(event) for event in SMALL_REST if case.kind == "small"]
    events += [[kind, ticket, units * UNIT[case.kind]] for kind, ticket, units in TELLING if case.kind in UNIT]
    live: list[int] = []
    for ticket in range(case.n_events):
        if live and draw.chance(0.45):
            events.append(["free", live.pop(draw.between(0, len(live) - 1)), 0])
        elif case.kind == "mixed" and draw.chance(0.06):
            events.append(["empty_cache", 0, 0])
        else:
            kind = case.kind if case.kind != "mixed" else "small" if draw.chance(0.4) else "large"
            # A size that comes back finds a block that fits, a slightly smaller one finds a question.
            size = draw.size(kind)
            least, most = (1, MiB) if kind == "small" else (MiB + 1, 40 * MiB)
            earlier = [event[2] for event in events if least <= event[2] <= most]
            if earlier and draw.chance(0.4):
                size = max(least, earlier[draw.between(0, len(earlier) - 1)] - draw.between(0, 600) * KiB)
            events.append(["malloc", ticket, size])
            live.append(ticket)
    if case.kind == "mixed":
        # What empty_cache gives back at the end: a segment larger than any other, and all of the small pool.
        sizes = {ticket: n_bytes for kind, ticket, n_bytes in events if kind == "malloc"}
        last = (case.n_events, 50 * MiB), (case.n_events + 1, MiB)
        events += [["malloc", ticket, n_bytes] for ticket, n_bytes in last]
        small = [ticket for ticket in live if sizes[ticket] <= MiB]
        events += [["free", ticket, 0] for ticket in (case.n_events, case.n_events + 1, *small)]
        events.append(["empty_cache", 0, 0])
    return events


def drive_allocator(ans, case: AllocationTrace, tree: dict, stage) -> dict[str, object]:
    """rows: what the answer says after each event. factor: by which it says that a step gets longer, if asked."""
    events = {name: [tuple(event) for event in tree[name]] for name in ("trace", "before", "step")}
    rows = ans.replay_trace(events["trace"])
    if not isinstance(rows, list | tuple):
        raise TypeError(f"replay_trace should return a list of rows, and returned {type(rows).__name__}")
    rows = [list(row) for row in rows]
    if case.kind != "mixed":
        return {"rows": rows, "factor": None}
    factor = ans.slow_down(events["before"], events["step"], case.step_ms, case.malloc_ms, case.free_ms)
    return {"rows": rows, "factor": factor}


ALLOCATOR = Exercise(
    id="09-allocator",
    title="Replay PyTorch's caching allocator",
    points=5,
    minutes=45,
    difficulty=3,
    answers=(Answer("replay_trace"), Answer("slow_down")),
    public=(
        AllocationTrace("sizes"),
        AllocationTrace("small", n_events=50),
        AllocationTrace("large", n_events=60),
        AllocationTrace("mixed", n_events=60, step_ms=40.0),
        AllocationTrace("mixed", n_events=80, malloc_ms=1.2, free_ms=0.5),
    ),
    inputs=trace_inputs,
    drive=drive_allocator,
    forbids=("labkit.simdevice.CachingAllocator", "labkit.simdevice.allocator", "labkit.simdevice.SimDevice"),
)
