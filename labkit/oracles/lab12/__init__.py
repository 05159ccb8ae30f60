"""Lab 12, Triton and fusion: what is true of a right answer."""

from labkit.oracles.lab12.adamw import ADAMW
from labkit.oracles.lab12.add import ADD
from labkit.oracles.lab12.dropout import BIAS_GELU_DROPOUT
from labkit.oracles.lab12.rmsnorm import RMSNORM
from labkit.oracles.lab12.softmax import SOFTMAX
from labkit.oracles.lab12.swiglu import SWIGLU

__all__ = [
    "ADAMW",
    "ADD",
    "BIAS_GELU_DROPOUT",
    "RMSNORM",
    "SOFTMAX",
    "SWIGLU",
]
