"""Lab 13, tiles and online algorithms: what is true of a right answer."""

from labkit.oracles.lab13.cross_entropy import CROSS_ENTROPY
from labkit.oracles.lab13.flash_attention import FLASH_ATTENTION
from labkit.oracles.lab13.grouped_order import GROUPED_ORDER
from labkit.oracles.lab13.matmul import MATMUL
from labkit.oracles.lab13.online_softmax import ONLINE_SOFTMAX

__all__ = [
    "CROSS_ENTROPY",
    "FLASH_ATTENTION",
    "GROUPED_ORDER",
    "MATMUL",
    "ONLINE_SOFTMAX",
]
