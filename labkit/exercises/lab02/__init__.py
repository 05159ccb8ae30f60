"""Lab 02, float formats and summation error: what is asked, given and run."""

ORDER = (
    "decode",
    "encode",
    "format-table",
    "int8-quantize",
    "sums",
    "merge-smallest",
    "blocked-sum",
    "stochastic-rounding",
)
