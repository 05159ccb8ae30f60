"""Lab 19, long context and experts: what is asked, given and run."""

ORDER = ("zigzag", "ring-attention", "ulysses", "moe-dispatch", "moe-capacity", "plan")
