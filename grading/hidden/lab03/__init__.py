"""Lab 03, mixed precision: hidden cases."""

from grading.hidden.lab03.blocks import AUTOCAST_DTYPES
from grading.hidden.lab03.memory import AMP_MEMORY
from grading.hidden.lab03.precision import LOSS_SCALER, UNDERFLOW
from grading.hidden.lab03.steps import TRAIN_STEP

__all__ = ["AMP_MEMORY", "AUTOCAST_DTYPES", "LOSS_SCALER", "TRAIN_STEP", "UNDERFLOW"]
