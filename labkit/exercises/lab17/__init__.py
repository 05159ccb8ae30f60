"""Lab 17, tensor parallelism: what is asked, given and run."""

ORDER = (
    "tp-mlp",
    "tp-attention",
    "sequence-parallel",
    "vocab-loss",
    "vocab-embedding",
    "rank-groups",
    "compose-bugs",
    "mend",
)
