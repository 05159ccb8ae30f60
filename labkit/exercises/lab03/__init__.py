"""Lab 03, mixed precision: what is asked, fed and run."""

# isort: off
# In the order of the notebook, which is the order in which `progress` lists them.
from labkit.exercises.lab03.underflow import UNDERFLOW
from labkit.exercises.lab03.scaler import LOSS_SCALER
from labkit.exercises.lab03.step import TRAIN_STEP
from labkit.exercises.lab03.blocks import AUTOCAST_DTYPES
from labkit.exercises.lab03.memory import AMP_MEMORY

# isort: on

__all__ = ["AMP_MEMORY", "AUTOCAST_DTYPES", "LOSS_SCALER", "TRAIN_STEP", "UNDERFLOW"]
