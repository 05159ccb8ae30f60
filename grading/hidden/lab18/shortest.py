"""Lab 18: the shortest step of a pipeline whose backward pass is split, by looking at all schedules that could be it.

Micro-batches are alike, so every stage takes them in order. What is left out cannot be shorter: of the passes that
could be next, the one that would end first decides on a stage, and one of that stage's passes that can begin before
then comes next, since otherwise it would fit in for nothing (Giffler and Thompson). Of two ways to one point, one that
is ahead in nothing ends there.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from labkit.exercises.lab18.zero_bubble import Split

Times = tuple[float, ...]


@dataclass(frozen=True)
class _Point:
    """A way so far, by stage: the passes that are listed, when it is free, and when the activations and gradients that
    its neighbour has not used yet were ready.
    """

    listed: tuple[tuple[int, int, int], ...]
    free: Times
    activations: tuple[Times, ...]
    gradients: tuple[Times, ...]

    @property
    def times(self) -> Times:
        return (*self.free, *itertools.chain(*self.activations), *itertools.chain(*self.gradients))


def shortest(case: Split) -> float:
    """The least makespan: of all ways so far, the one that could still be the shortest goes on first."""
    n, tie = case.n_stages, itertools.count()
    seen: dict[tuple, list[Times]] = {}
    waiting = [(0.0, 0, next(tie), _Point(((0, 0, 0),) * n, (0.0,) * n, ((),) * n, ((),) * n))]
    while True:
        at_least, _, _, point = heapq.heappop(waiting)
        if all(passes == (case.n_microbatches,) * 3 for passes in point.listed):
            return at_least
        others = seen.setdefault(point.listed, [])
        if any(all(a <= b for a, b in zip(other, point.times, strict=True)) for other in others):
            continue
        others.append(point.times)
        for after in _next_points(point, case):
            n_listed = sum(map(sum, after.listed))
            # Of equals the one that has come farthest.
            heapq.heappush(waiting, (max(at_least, _at_least(after, case)), -n_listed, next(tie), after))


def _at_least(point: _Point, case: Split) -> float:
    """No way on from here is shorter: a stage does what is left, and the stages before it then go back once more."""
    m, costs = case.n_microbatches, (case.forward, case.input_grad, case.weight_grad)
    found = 0.0
    for stage, passes in enumerate(point.listed):
        left = [(m - n_listed) * times[stage] for n_listed, times in zip(passes, costs, strict=True)]
        found = max(found, point.free[stage] + sum(left))
        if stage and passes[1] < m:
            last_way_back = sum(case.input_grad[:stage]) + case.weight_grad[0]
            found = max(found, point.free[stage] + left[0] + left[1] + last_way_back)
    return found


def _next_points(point: _Point, case: Split) -> Iterator[_Point]:
    passes = list(_passes(point, case))
    first_end, stage = min((end, stage) for _, end, stage, _ in passes)
    for begin, end, at, kind in passes:
        if at == stage and begin < first_end:
            yield _after(point, stage, kind, end)


def _passes(point: _Point, case: Split) -> Iterator[tuple[float, float, int, str]]:
    """(begin, end, stage, kind) of each pass that could be next."""
    last = case.n_stages - 1
    for stage, (n_forward, n_input, n_weight) in enumerate(point.listed):
        free = point.free[stage]
        if n_forward < min(case.n_microbatches, n_weight + case.memory) and (not stage or point.activations[stage - 1]):
            begin = max(free, point.activations[stage - 1][0]) if stage else free
            yield begin, begin + case.forward[stage], stage, "F"
        if n_input < n_forward and (stage == last or point.gradients[stage + 1]):
            begin = max(free, point.gradients[stage + 1][0]) if stage < last else free
            yield begin, begin + case.input_grad[stage], stage, "I"
        if n_weight < n_input:
            yield free, free + case.weight_grad[stage], stage, "W"


def _after(point: _Point, stage: int, kind: str, end: float) -> _Point:
    n_forward, n_input, n_weight = point.listed[stage]
    counts = (n_forward + (kind == "F"), n_input + (kind == "I"), n_weight + (kind == "W"))
    after = replace(point, listed=_put(point.listed, stage, counts), free=_put(point.free, stage, end))
    last = len(point.free) - 1
    if kind == "F":
        return replace(after, activations=_handed_on(point.activations, stage, stage - 1, stage < last, end))
    if kind == "I":
        return replace(after, gradients=_handed_on(point.gradients, stage, stage + 1, stage > 0, end))
    return after


def _handed_on(ready: tuple[Times, ...], stage: int, giver: int, is_wanted: bool, end: float) -> tuple[Times, ...]:
    """What the giver had ready first is used up, and what this stage made is ready for the next, if there is one."""
    if 0 <= giver < len(ready):
        ready = _put(ready, giver, ready[giver][1:])
    return _put(ready, stage, (*ready[stage], end)) if is_wanted else ready


def _put(parts: tuple, place: int, part: object) -> tuple:
    return (*parts[:place], part, *parts[place + 1 :])
