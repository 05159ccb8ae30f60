"""Lab 14, collectives: what is asked, fed and run."""

ORDER = (
    "naive",
    "tree",
    "butterfly",
    "ring",
    "reduce-scatter",
    "hierarchical",
    "cost-model",
)
