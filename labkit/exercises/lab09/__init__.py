"""Lab 09, timing an asynchronous device: what is asked, fed and run."""

# isort: off
# In the order of the notebook, which is the order in which `progress` lists them.
from labkit.exercises.lab09.bench import BENCH
from labkit.exercises.lab09.events import EVENTS
from labkit.exercises.lab09.overlap import OVERLAP
from labkit.exercises.lab09.hidden_syncs import HIDDEN_SYNCS
from labkit.exercises.lab09.allocator import ALLOCATOR
from labkit.exercises.lab09.profile import PROFILE

# isort: on

__all__ = [
    "ALLOCATOR",
    "BENCH",
    "EVENTS",
    "HIDDEN_SYNCS",
    "OVERLAP",
    "PROFILE",
]
