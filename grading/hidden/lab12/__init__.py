"""Lab 12, Triton and fusion: hidden cases."""

from grading.hidden.lab12.adamw import ADAMW
from grading.hidden.lab12.add import ADD
from grading.hidden.lab12.dropout import BIAS_GELU_DROPOUT
from grading.hidden.lab12.rmsnorm import RMSNORM
from grading.hidden.lab12.softmax import SOFTMAX
from grading.hidden.lab12.swiglu import SWIGLU

__all__ = [
    "ADAMW",
    "ADD",
    "BIAS_GELU_DROPOUT",
    "RMSNORM",
    "SOFTMAX",
    "SWIGLU",
]
