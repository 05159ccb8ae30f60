"""Lab 13, tiles and online algorithms: hidden cases."""

from grading.hidden.lab13.cross_entropy import CROSS_ENTROPY
from grading.hidden.lab13.flash_attention import FLASH_ATTENTION
from grading.hidden.lab13.grouped_order import GROUPED_ORDER
from grading.hidden.lab13.matmul import MATMUL
from grading.hidden.lab13.online_softmax import ONLINE_SOFTMAX

__all__ = [
    "CROSS_ENTROPY",
    "FLASH_ATTENTION",
    "GROUPED_ORDER",
    "MATMUL",
    "ONLINE_SOFTMAX",
]
