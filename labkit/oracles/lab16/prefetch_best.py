"""Lab 16: the shortest step that any order of commands gives, by looking at all of them that could be it.

What is left out cannot be shorter: a layer is freed right after a pass or kept, because a later free can be moved there
with every gather that it would have held up moved before the pass; and a gather is of a layer that a pass still needs.
Of two ways to one point, one that is ahead in nothing ends there.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from dataclasses import dataclass, replace

from labkit.exercises.lab16.prefetch import MOST_WHOLE, Blocks


@dataclass(frozen=True)
class _Point:
    """A way so far: how many passes are listed, which layers are whole since when and which are to be reduced from when
    on, and when the network, the GPU and the memory that was freed are free.
    """

    n_passes: int = 0
    whole: tuple[tuple[int, float], ...] = ()
    waiting: tuple[tuple[int, float], ...] = ()
    network: float = 0.0
    gpu: float = 0.0
    memory: float = 0.0

    @property
    def place(self) -> tuple:
        return self.n_passes, tuple(layer for layer, _ in self.whole), tuple(layer for layer, _ in self.waiting)

    @property
    def times(self) -> tuple[float, ...]:
        return (self.network, self.gpu, self.memory, *(at for _, at in self.whole), *(at for _, at in self.waiting))


@functools.lru_cache(maxsize=256)
def best_ms(case: Blocks) -> float:
    """The shortest time of a step: of all ways so far, the one that could still be the shortest goes on first."""
    seen: dict[tuple, list[tuple[float, ...]]] = {}
    tie = itertools.count()
    waiting = [(0.0, next(tie), _Point())]
    while True:
        at_least, _, point = heapq.heappop(waiting)
        if point.n_passes == 2 * case.n_layers and not point.waiting:
            return at_least
        if _is_ahead(point, seen):
            for after in _next_points(point, case):
                # Of equals the one that has come farthest.
                heapq.heappush(waiting, (_at_least(after, case), -next(tie), after))


def _at_least(point: _Point, case: Blocks) -> float:
    """No way on from here is shorter."""
    left = case.passes[point.n_passes :]
    n_backward = sum(kind == "backward" for kind, _ in left)
    gpu = point.gpu + n_backward * case.backward_ms + (len(left) - n_backward) * case.forward_ms
    return max(gpu, point.network + (n_backward + len(point.waiting)) * case.reduce_ms)


def _is_ahead(point: _Point, seen: dict[tuple, list[tuple[float, ...]]]) -> bool:
    others = seen.setdefault(point.place, [])
    if any(all(a <= b for a, b in zip(other, point.times, strict=True)) for other in others):
        return False
    others.append(point.times)
    return True


def _next_points(point: _Point, case: Blocks) -> list[_Point]:
    found = []
    whole, waiting = dict(point.whole), dict(point.waiting)
    left = case.passes[point.n_passes :]
    for layer in waiting:
        ended = max(point.network, waiting[layer]) + case.reduce_ms
        rest = {one: at for one, at in waiting.items() if one != layer}
        found.append(replace(point, network=ended, waiting=_sorted(rest)))
    if len(whole) < MOST_WHOLE:
        for layer in {layer for _, layer in left} - whole.keys():
            ended = max(point.network, point.memory) + case.gather_ms
            found.append(replace(point, network=ended, whole=_sorted({**whole, layer: ended})))
    if left and left[0][1] in whole:
        kind, layer = left[0]
        ended = max(point.gpu, whole[layer]) + case.ms_of(kind)
        after = replace(point, n_passes=point.n_passes + 1, gpu=ended)
        if kind == "backward":
            after = replace(after, waiting=_sorted({**waiting, layer: ended}))
        else:
            found.append(after)
        rest = {one: at for one, at in whole.items() if one != layer}
        found.append(replace(after, whole=_sorted(rest), memory=max(point.memory, ended)))
    return found


def _sorted(times: dict[int, float]) -> tuple[tuple[int, float], ...]:
    return tuple(sorted(times.items()))
