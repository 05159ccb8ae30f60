"""Lab 19, long context and experts: what is asked, given and run."""

ORDER = ("zigzag", "ring-attention", "moe-dispatch", "moe-capacity")
