"""Figures drawn from the student's own results: a result goes in, a matplotlib Figure comes out."""

from labkit.figures.formats import bit_fields, number_line, quantization_error
from labkit.figures.memory import memory_by_category, memory_timeline
from labkit.figures.sums import error_against_n, merging_cost, stalling_sum, tiny_updates
from labkit.figures.warmup import rms_over_scale

__all__ = [
    "bit_fields",
    "error_against_n",
    "memory_by_category",
    "memory_timeline",
    "merging_cost",
    "number_line",
    "quantization_error",
    "rms_over_scale",
    "stalling_sum",
    "tiny_updates",
]
