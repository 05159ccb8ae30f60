"""What a GPU compiler makes of a Triton kernel, on any machine: registers, spills, width of accesses, PTX, SASS.

`compile_report` needs Triton, and runs the assembler that comes with it as a subprocess.
"""

from labkit.meters.compiled.build import LARGE_BLOCK, CompileFailed, compile_report
from labkit.meters.compiled.launched import ARCHS, compiled_figures, measure_compiled
from labkit.meters.compiled.report import CompileReport

__all__ = [
    "ARCHS",
    "LARGE_BLOCK",
    "CompileFailed",
    "CompileReport",
    "compile_report",
    "compiled_figures",
    "measure_compiled",
]
