"""Count the operations that PyTorch dispatches in a block: what Python-side loops over elements cost.

It counts calls, not FLOPs, and sees nothing that happens inside an operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from labkit.meters.dispatch import Meter


class Dispatches(Meter):
    """Counts every operation that reaches the dispatcher."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


@contextmanager
def count_operations(measured: dict[str, float]) -> Iterator[None]:
    """Add the number of dispatched operations to `measured["dispatches"]`."""
    dispatches = Dispatches()
    try:
        with dispatches:
            yield
    finally:
        measured["dispatches"] = measured.get("dispatches", 0) + dispatches.count
