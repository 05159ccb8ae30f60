"""What a step of training holds in memory, seen from the tensors that it works on: no more than its bill says.

What a script keeps from a later step on, or only where tensors hold data, is on no bill. It is found where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from labkit.capstone.cost import Costs
from labkit.meters.memory.tracker import Tracker


class Held(Tracker):
    """Live bytes of what the block makes and of all that it uses, without what the engine does itself."""

    def __init__(self, costs: Costs) -> None:
        super().__init__("cpu")
        self.most_bytes = 0
        self._costs = costs

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self._costs.is_paused:
            return func(*args, **(kwargs or {}))
        return super().__torch_dispatch__(func, types, args, kwargs)


@contextmanager
def held(costs: Costs) -> Iterator[Held]:
    """Watch the block. costs: enter it later, so that it sees who asks for what."""
    with Held(costs) as seen:
        yield seen
    seen.most_bytes = max(seen.curve)
