"""Lab 02, float formats and summation error: what is asked, fed and run."""

from labkit.exercises.lab02.formats import DECODE, ENCODE, FORMAT_TABLE, INT8_QUANTIZE

# isort: off
# In the order of the notebook, which is the order in which `progress` lists them.
from labkit.exercises.lab02.sums import SUMS, MERGE_SMALLEST, BLOCKED_SUM, STOCHASTIC_ROUNDING

# isort: on

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
