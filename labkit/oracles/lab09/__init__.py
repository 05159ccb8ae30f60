"""Lab 09, timing an asynchronous device: what is true of a right answer."""

from labkit.oracles.lab09.allocator import ALLOCATOR
from labkit.oracles.lab09.bench import BENCH
from labkit.oracles.lab09.events import EVENTS
from labkit.oracles.lab09.hidden_syncs import HIDDEN_SYNCS
from labkit.oracles.lab09.overlap import OVERLAP
from labkit.oracles.lab09.profile import PROFILE

__all__ = [
    "ALLOCATOR",
    "BENCH",
    "EVENTS",
    "HIDDEN_SYNCS",
    "OVERLAP",
    "PROFILE",
]
