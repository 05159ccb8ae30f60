"""Lab 01, napkin math: what is asked, fed and run."""

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
