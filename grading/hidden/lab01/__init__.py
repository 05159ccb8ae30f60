"""Lab 01, napkin math: hidden cases."""

from grading.hidden.lab01.compute import COMPUTE_DAYS
from grading.hidden.lab01.intensity import ARITHMETIC_INTENSITY
from grading.hidden.lab01.memory import (
    ACTIVATION_BYTES,
    EXTRAPOLATE,
    LARGEST_BATCH,
    MODEL_STATE_BYTES,
    PARAM_COUNT,
)
from grading.hidden.lab01.scaling import SCALING_LAW

__all__ = [
    "ACTIVATION_BYTES",
    "ARITHMETIC_INTENSITY",
    "COMPUTE_DAYS",
    "EXTRAPOLATE",
    "LARGEST_BATCH",
    "MODEL_STATE_BYTES",
    "PARAM_COUNT",
    "SCALING_LAW",
]
