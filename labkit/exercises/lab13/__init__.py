"""Lab 13, tiles and online algorithms: what is asked, fed and run."""

# isort: off
# In the order of the notebook, which is the order in which `progress` lists them.
from labkit.exercises.lab13.matmul import MATMUL
from labkit.exercises.lab13.grouped_order import GROUPED_ORDER
from labkit.exercises.lab13.online_softmax import ONLINE_SOFTMAX
from labkit.exercises.lab13.cross_entropy import CROSS_ENTROPY
from labkit.exercises.lab13.flash_attention import FLASH_ATTENTION

# isort: on

__all__ = [
    "CROSS_ENTROPY",
    "FLASH_ATTENTION",
    "GROUPED_ORDER",
    "MATMUL",
    "ONLINE_SOFTMAX",
]
