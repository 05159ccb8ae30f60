"""Lab 12, Triton and fusion: what is asked, fed and run."""

# isort: off
# In the order of the notebook, which is the order in which `progress` lists them.
from labkit.exercises.lab12.add import ADD
from labkit.exercises.lab12.softmax import SOFTMAX
from labkit.exercises.lab12.rmsnorm import RMSNORM
from labkit.exercises.lab12.swiglu import SWIGLU
from labkit.exercises.lab12.dropout import BIAS_GELU_DROPOUT
from labkit.exercises.lab12.adamw import ADAMW

# isort: on

__all__ = [
    "ADAMW",
    "ADD",
    "BIAS_GELU_DROPOUT",
    "RMSNORM",
    "SOFTMAX",
    "SWIGLU",
]
