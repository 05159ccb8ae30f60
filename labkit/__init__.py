"""What the notebooks of Efficient Training Labs import: checks, meters, figures, the environment page.

A name is found when it is first asked for, and torch loaded then: the grader imports the light rooms of this package in
processes that never compute. Nothing here grades: the instructor's side is the package `grading`.
"""

import importlib
import importlib.util

from labkit.lazy import on_first_use

# Bound to this package by its first import, which is now and not later: `labkit.check` is the function.
importlib.import_module("labkit.check")
del globals()["check"]

_HOMES = {
    "CheckFailed": "labkit.check.api",
    "KernelProfile": "labkit.simt",
    "Predictions": "labkit.predictions",
    "Timing": "labkit.meters",
    "VirtualClock": "labkit.clock",
    "bench": "labkit.meters",
    "check": "labkit.check.api",
    "compile_cuda": "labkit.simt",
    "compile_report": "labkit.meters",
    "device": "labkit.devices",
    "each_written": "labkit.blanks",
    "feature_row": "labkit.features",
    "feature_table": "labkit.features",
    "guard_launches": "labkit.meters",
    "has_gpu": "labkit.devices",
    "leave_out_blanks": "labkit.left_out",
    "limit_memory": "labkit.meters",
    "measure_step": "labkit.meters",
    "progress": "labkit.check.api",
    "run_ranks": "labkit.ranks",
    "seed_all": "labkit.devices",
    "track_comm": "labkit.meters",
    "track_compile": "labkit.meters",
    "track_cuda": "labkit.simt",
    "track_memory": "labkit.meters",
    "track_ops": "labkit.meters",
    "track_traffic": "labkit.meters",
    "written": "labkit.blanks",
}
"""The public names, and the module of each."""

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name in _HOMES:
        _load_torch()
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _load_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"labkit needs PyTorch, which cannot be loaded in this environment ({error}). Run `make setup` in the "
            "course's folder and start JupyterLab with `make lab`, or install PyTorch here: pip install torch"
        ) from error


if importlib.util.find_spec("torch") is None:
    _load_torch()
