"""What the notebooks of Efficient Training Labs import: checks, meters, figures, the environment page.

Nothing here grades: the instructor's side is the package `grading`.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"labkit needs PyTorch, which cannot be loaded in this environment ({error}). Run `make setup` in the course's "
        "folder and start JupyterLab with `make lab`, or install PyTorch here: pip install torch"
    ) from error

from labkit.check import CheckFailed, check, progress
from labkit.device import device, has_gpu, seed_all
from labkit.meters import (
    Timing,
    bench,
    compile_report,
    guard_launches,
    limit_memory,
    measure_step,
    track_comm,
    track_memory,
    track_ops,
    track_traffic,
)
from labkit.ranks import run_ranks

__all__ = [
    "CheckFailed",
    "Timing",
    "bench",
    "check",
    "compile_report",
    "device",
    "guard_launches",
    "has_gpu",
    "limit_memory",
    "measure_step",
    "progress",
    "run_ranks",
    "seed_all",
    "track_comm",
    "track_memory",
    "track_ops",
    "track_traffic",
]
