"""Lab 01, napkin math: what is asked, fed and run."""

# isort: off
# In the order of the notebook, which is the order in which `progress` lists them.
from labkit.exercises.lab01.params import PARAM_COUNT
from labkit.exercises.lab01.states import MODEL_STATE_BYTES
from labkit.exercises.lab01.activations import ACTIVATION_BYTES, EXTRAPOLATE
from labkit.exercises.lab01.batch import LARGEST_BATCH
from labkit.exercises.lab01.scaling import SCALING_LAW
from labkit.exercises.lab01.intensity import ARITHMETIC_INTENSITY
from labkit.exercises.lab01.compute import COMPUTE_DAYS

# isort: on

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
