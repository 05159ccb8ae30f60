"""Lab 15, data parallel: what is asked, given and run."""

ORDER = (
    "ddp",
    "no-sync",
    "amp-clip",
    "sampler",
    "sync-bn",
    "env",
    "launch",
)
