"""A tape of kernel launches: what was launched on what, and what PyTorch moved in between, without any of the data.

It is recorded where an answer runs and played elsewhere, on other inputs, by one who holds the kernels' source alone.
"""

from labkit.meters.tape.meter import measure_kernels
from labkit.meters.tape.play import Played, Player, UnplayableTape
from labkit.meters.tape.record import MAX_ENTRIES, Tape
from labkit.meters.tape.source import digest_of_function, digest_of_node

__all__ = [
    "MAX_ENTRIES",
    "Played",
    "Player",
    "Tape",
    "UnplayableTape",
    "digest_of_function",
    "digest_of_node",
    "measure_kernels",
]
