"""Meters: what a piece of code costs in bytes and operations, measured while it runs, the same on every machine.

`METERS` maps the name that an exercise declares to the context manager its driver opens with `stage.meter(name)`; what
each of them measures stands in `labkit.measures`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from labkit.meters.comm import count_communication, track_comm
from labkit.meters.compile import count_compiles, measure_generated, measure_kept, track_compile
from labkit.meters.compiled import compile_report, measure_compiled
from labkit.meters.launch_log import measure_kernels
from labkit.meters.memory import (
    MemoryProfile,
    limit_memory,
    measure_memory,
    measure_saved,
    measure_step,
    track_memory,
)
from labkit.meters.ops import count_operations, track_ops
from labkit.meters.timing import Timing, bench
from labkit.meters.traffic import guard_launches, measure_traffic, track_traffic


def _measure_cuda(measured: dict[str, float], held: dict[str, Sequence[str]]) -> AbstractContextManager[None]:
    # Loaded where it is asked for: what executes CUDA C++ is forty modules.
    from labkit.meters.cuda import measure_cuda

    return measure_cuda(measured, held)


METERS: dict[str, Callable[[dict[str, float], dict[str, Sequence[str]]], AbstractContextManager[None]]] = {
    "memory": measure_memory,
    "saved": measure_saved,
    "ops": count_operations,
    "comm": count_communication,
    "traffic": measure_kernels,
    "compiled": measure_compiled,
    "compile": count_compiles,
    "generated": measure_generated,
    "kept": measure_kept,
    "cuda": _measure_cuda,
}
"""Meter name -> context manager factory; the dicts that it is given receive, when the block ends, the measures and the
names of what a measure consists of."""

__all__ = [
    "METERS",
    "MemoryProfile",
    "Timing",
    "bench",
    "compile_report",
    "count_communication",
    "count_compiles",
    "count_operations",
    "guard_launches",
    "limit_memory",
    "measure_compiled",
    "measure_generated",
    "measure_kept",
    "measure_kernels",
    "measure_memory",
    "measure_saved",
    "measure_step",
    "measure_traffic",
    "track_comm",
    "track_compile",
    "track_memory",
    "track_ops",
    "track_traffic",
]
