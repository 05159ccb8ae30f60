"""Lab 13, tiles and online algorithms: what is asked, given and run."""

ORDER = (
    "matmul",
    "grouped-order",
    "online-softmax",
    "cross-entropy",
    "flash-attention",
    "flash-backward",
)
