"""Lab 01, napkin math: what is asked, given and run."""

ORDER = (
    "param-count",
    "model-state-bytes",
    "activation-bytes",
    "extrapolate",
    "largest-batch",
    "scaling-law",
    "arithmetic-intensity",
    "compute-days",
)
