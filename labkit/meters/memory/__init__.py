"""Memory: live bytes, the peak and what it consists of, the same on a CPU, on fake tensors and on CUDA."""

from labkit.meters.memory.budget import Held, held_now, measure_memory, measure_saved
from labkit.meters.memory.cap import limit_memory
from labkit.meters.memory.fake import fake_tensors
from labkit.meters.memory.late import LATE, load_imports_of, load_late_modules
from labkit.meters.memory.profile import AliveTensor, MemoryProfile, Point
from labkit.meters.memory.record import CATEGORIES
from labkit.meters.memory.sites import Site
from labkit.meters.memory.snapshot import cuda_snapshot, snapshot_html
from labkit.meters.memory.step import measure_step, training_step
from labkit.meters.memory.track import track_memory

__all__ = [
    "CATEGORIES",
    "LATE",
    "AliveTensor",
    "Held",
    "MemoryProfile",
    "Point",
    "Site",
    "cuda_snapshot",
    "fake_tensors",
    "held_now",
    "limit_memory",
    "load_imports_of",
    "load_late_modules",
    "measure_memory",
    "measure_saved",
    "measure_step",
    "snapshot_html",
    "track_memory",
    "training_step",
]
