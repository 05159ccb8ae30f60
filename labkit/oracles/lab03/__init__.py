"""Lab 03, mixed precision: what is true of a right answer."""

from labkit.oracles.lab03.autocast import AUTOCAST_DTYPES
from labkit.oracles.lab03.memory import AMP_MEMORY
from labkit.oracles.lab03.scaler import LOSS_SCALER
from labkit.oracles.lab03.step import TRAIN_STEP
from labkit.oracles.lab03.underflow import UNDERFLOW

__all__ = ["AMP_MEMORY", "AUTOCAST_DTYPES", "LOSS_SCALER", "TRAIN_STEP", "UNDERFLOW"]
