"""Lab 05, recomputation and offloading: hidden cases."""

from grading.hidden.lab05.checkpoint import CHECKPOINT
from grading.hidden.lab05.chunked_loss import CHUNKED_LOSS
from grading.hidden.lab05.leak import FIND_THE_LEAK
from grading.hidden.lab05.low_memory import LOW_MEMORY
from grading.hidden.lab05.offload import OFFLOAD
from grading.hidden.lab05.segments import SEGMENTS
from grading.hidden.lab05.selective import SELECTIVE
from grading.hidden.lab05.stream_weights import STREAM_WEIGHTS

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
