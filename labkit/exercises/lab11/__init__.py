"""Lab 11, torch.compile: what is asked, given and run."""

ORDER = (
    "backend",
    "graph-breaks",
    "recompiles",
    "fuse",
    "memory",
    "break-even",
    "custom-op",
    "cuda-graph",
    "lazy-tensor",
    "trace-or-script",
)
