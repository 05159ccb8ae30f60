"""Lab 03, mixed precision: what is asked, given and run."""

ORDER = (
    "underflow",
    "loss-scaler",
    "train-step",
    "autocast-dtypes",
    "amp-memory",
)
