"""Lab 02, float formats and summation error: what is true of a right answer."""

from labkit.oracles.lab02.blocks import BLOCKED_SUM
from labkit.oracles.lab02.encoding import ENCODE
from labkit.oracles.lab02.formats import DECODE, FORMAT_TABLE
from labkit.oracles.lab02.merging import MERGE_SMALLEST
from labkit.oracles.lab02.quantize import INT8_QUANTIZE
from labkit.oracles.lab02.rounding import STOCHASTIC_ROUNDING
from labkit.oracles.lab02.sums import SUMS

__all__ = [
    "BLOCKED_SUM",
    "DECODE",
    "ENCODE",
    "FORMAT_TABLE",
    "INT8_QUANTIZE",
    "MERGE_SMALLEST",
    "STOCHASTIC_ROUNDING",
    "SUMS",
]
