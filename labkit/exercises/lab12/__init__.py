"""Lab 12, Triton and fusion: what is asked, given and run."""

ORDER = (
    "add",
    "softmax",
    "rmsnorm",
    "swiglu",
    "bias-gelu-dropout",
    "adamw",
)
