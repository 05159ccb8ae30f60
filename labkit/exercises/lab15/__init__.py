"""Lab 15, data parallel: what is asked, given and run."""

ORDER = (
    "ddp",
    "optimizer-wrapper",
    "no-sync",
    "amp-clip",
    "sampler",
    "sync-bn",
    "stale",
    "env",
    "launch",
)
