"""Lab 09, timing an asynchronous device: hidden cases."""

from grading.hidden.lab09.allocator import ALLOCATOR
from grading.hidden.lab09.bench import BENCH
from grading.hidden.lab09.events import EVENTS
from grading.hidden.lab09.hidden_syncs import HIDDEN_SYNCS
from grading.hidden.lab09.overlap import OVERLAP
from grading.hidden.lab09.profile import PROFILE

__all__ = [
    "ALLOCATOR",
    "BENCH",
    "EVENTS",
    "HIDDEN_SYNCS",
    "OVERLAP",
    "PROFILE",
]
