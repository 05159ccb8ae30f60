"""Lab 14, collectives: what is asked, given and run."""

ORDER = (
    "naive",
    "tree",
    "butterfly",
    "ring",
    "reduce-scatter",
    "hierarchical",
    "cost-model",
)
