"""Lab 01, napkin math: what is true of a right answer."""

from labkit.oracles.lab01.activations import ACTIVATION_BYTES
from labkit.oracles.lab01.batch import LARGEST_BATCH
from labkit.oracles.lab01.compute import COMPUTE_DAYS
from labkit.oracles.lab01.depth import EXTRAPOLATE
from labkit.oracles.lab01.intensity import ARITHMETIC_INTENSITY
from labkit.oracles.lab01.params import PARAM_COUNT
from labkit.oracles.lab01.scaling import SCALING_LAW
from labkit.oracles.lab01.states import MODEL_STATE_BYTES

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
