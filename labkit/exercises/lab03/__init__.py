"""Lab 03, mixed precision: what is asked, fed and run."""

ORDER = (
    "underflow",
    "loss-scaler",
    "train-step",
    "autocast-dtypes",
    "amp-memory",
)
