"""Figures drawn from the student's own results: a result goes in, a matplotlib Figure comes out."""

from labkit.figures.adapters import bytes_by_method, code_usage, loss_at_equal_bytes, update_spectrum
from labkit.figures.formats import bit_fields, number_line, quantization_error
from labkit.figures.gantt import gantt
from labkit.figures.memory import memory_by_category, memory_timeline
from labkit.figures.memory_bars import Plan, memory_bars, memory_sliders
from labkit.figures.memory_lines import depth_line, kept_per_token
from labkit.figures.mixed_precision import amp_memory, dtype_map, gradient_histogram, loss_scale_trace
from labkit.figures.prompts import adaptation_losses, attention_map
from labkit.figures.recomputation import backpropagation_memory, segment_tradeoff
from labkit.figures.roofline import flops_against_time, roofline
from labkit.figures.scaling import scaling_law
from labkit.figures.sums import error_against_n, merging_cost, stalling_sum, tiny_updates
from labkit.figures.warmup import rms_over_scale

__all__ = [
    "Plan",
    "adaptation_losses",
    "amp_memory",
    "attention_map",
    "backpropagation_memory",
    "bit_fields",
    "bytes_by_method",
    "code_usage",
    "depth_line",
    "dtype_map",
    "error_against_n",
    "flops_against_time",
    "gantt",
    "gradient_histogram",
    "kept_per_token",
    "loss_at_equal_bytes",
    "loss_scale_trace",
    "memory_bars",
    "memory_by_category",
    "memory_sliders",
    "memory_timeline",
    "merging_cost",
    "number_line",
    "quantization_error",
    "rms_over_scale",
    "roofline",
    "scaling_law",
    "segment_tradeoff",
    "stalling_sum",
    "tiny_updates",
    "update_spectrum",
]
