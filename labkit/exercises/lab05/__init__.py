"""Lab 05, recomputation and offloading: what is asked, given and run."""

ORDER = (
    "checkpoint",
    "segments",
    "low-memory",
    "selective",
    "offload",
    "stream-weights",
    "find-the-leak",
    "chunked-loss",
)
