"""Lab 17, tensor parallelism: what is asked, given and run."""

ORDER = ("tp-mlp", "vocab-loss", "vocab-embedding", "rank-groups", "compose-bugs", "mend")
