"""Lab 05, recomputation and offloading: what is asked, fed and run."""

# isort: off
# In the order of the notebook, which is the order in which `progress` lists them.
from labkit.exercises.lab05.checkpoint import CHECKPOINT
from labkit.exercises.lab05.segments import SEGMENTS
from labkit.exercises.lab05.low_memory import LOW_MEMORY
from labkit.exercises.lab05.selective import SELECTIVE
from labkit.exercises.lab05.offload import OFFLOAD
from labkit.exercises.lab05.stream_weights import STREAM_WEIGHTS
from labkit.exercises.lab05.leak import FIND_THE_LEAK
from labkit.exercises.lab05.chunked_loss import CHUNKED_LOSS

# isort: on

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
