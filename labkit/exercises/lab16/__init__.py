"""Lab 16, ZeRO and FSDP: what is asked, given and run."""

ORDER = ("volume", "zero1", "zero2", "fsdp-unit", "fsdp", "clip", "prefetch", "meta-init", "checkpoint")
