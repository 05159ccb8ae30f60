"""What `torch.compile` does to a block of code, on any machine and without a compiler for the generated code.

`track_compile` counts. The names of PyTorch that it needs and that are not public stand in `torch_private`.
"""

from labkit.meters.compile.budget import count_compiles, measure_generated, measure_kept
from labkit.meters.compile.profile import Break, Code, CompileProfile, Graph, Kernel, Recompile, Saved
from labkit.meters.compile.track import track_compile

__all__ = [
    "Break",
    "Code",
    "CompileProfile",
    "Graph",
    "Kernel",
    "Recompile",
    "Saved",
    "count_compiles",
    "measure_generated",
    "measure_kept",
    "track_compile",
]
