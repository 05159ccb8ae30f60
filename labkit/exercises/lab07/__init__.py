"""Lab 07, data loading: what is asked, given and run."""

ORDER = (
    "length-buckets",
    "packing",
    "shard-workers",
    "memory-map",
    "slow-loop",
    "prefetch",
    "tar-shards",
    "cache",
    "resume",
)
