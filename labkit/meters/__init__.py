"""Meters: what a piece of code costs in bytes and operations, measured while it runs, the same on every machine.

`METERS` maps the name that an exercise declares to the context manager its driver opens with `stage.meter(name)`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from labkit.meters.memory import measure_memory
from labkit.meters.ops import count_operations

METERS: dict[str, Callable[[dict[str, float]], AbstractContextManager[None]]] = {
    "memory": measure_memory,
    "ops": count_operations,
}
"""Meter name -> context manager factory; the dict that it is given receives the measures when the block ends."""

__all__ = ["METERS", "count_operations", "measure_memory"]
