"""Lab 12, Triton and fusion: what is asked, fed and run."""

ORDER = (
    "add",
    "softmax",
    "rmsnorm",
    "swiglu",
    "bias-gelu-dropout",
    "adamw",
)
