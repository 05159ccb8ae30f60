"""Lab 02, float formats and summation error: hidden cases."""

from grading.hidden.lab02.formats import DECODE, ENCODE, FORMAT_TABLE, INT8_QUANTIZE
from grading.hidden.lab02.sums import BLOCKED_SUM, MERGE_SMALLEST, STOCHASTIC_ROUNDING, SUMS

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
