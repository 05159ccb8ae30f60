"""Lab 04, batch size and gradient accumulation: what is asked, given and run."""

ORDER = ("accumulate", "find-batch", "throughput", "alignment", "memory-format", "noise-scale")
