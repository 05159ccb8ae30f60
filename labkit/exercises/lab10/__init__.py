"""Lab 10, the architecture of a GPU: what is asked, given and run."""

ORDER = (
    "indexing",
    "sectors",
    "coalescing",
    "tile",
    "transpose",
    "block-reduce",
    "communicate",
    "histogram",
    "occupancy",
    "image",
    "kernel-life-cycle",
    "tiled-matmul",
    "scan",
    "divergence",
)
