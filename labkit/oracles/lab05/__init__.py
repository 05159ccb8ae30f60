"""Lab 05, recomputation and offloading: what is true of a right answer."""

from labkit.oracles.lab05.checkpoint import CHECKPOINT
from labkit.oracles.lab05.chunked_loss import CHUNKED_LOSS
from labkit.oracles.lab05.leak import FIND_THE_LEAK
from labkit.oracles.lab05.low_memory import LOW_MEMORY
from labkit.oracles.lab05.offload import OFFLOAD
from labkit.oracles.lab05.segments import SEGMENTS
from labkit.oracles.lab05.selective import SELECTIVE
from labkit.oracles.lab05.stream_weights import STREAM_WEIGHTS

__all__ = [
    "CHECKPOINT",
    "CHUNKED_LOSS",
    "FIND_THE_LEAK",
    "LOW_MEMORY",
    "OFFLOAD",
    "SEGMENTS",
    "SELECTIVE",
    "STREAM_WEIGHTS",
]
