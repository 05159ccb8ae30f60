"""What the notebooks of Efficient Training Labs import: checks, meters, figures, the environment page.

A name is found when it is first asked for, and torch loaded then: the grader imports the light rooms of this package in
processes that never compute. Nothing here grades: the instructor's side is the package `grading`.
"""

import importlib
import importlib.util

# Bound to this package by its first import, which is now and not later: `labkit.check` is the function.
importlib.import_module("labkit.check")
del globals()["check"]

_HOMES = {
    "CheckFailed": "check.api",
    "Predictions": "predictions",
    "Timing": "meters",
    "bench": "meters",
    "check": "check.api",
    "compile_report": "meters",
    "device": "devices",
    "feature_row": "features",
    "feature_table": "features",
    "guard_launches": "meters",
    "has_gpu": "devices",
    "limit_memory": "meters",
    "measure_step": "meters",
    "progress": "check.api",
    "run_ranks": "ranks",
    "seed_all": "devices",
    "track_comm": "meters",
    "track_memory": "meters",
    "track_ops": "meters",
    "track_traffic": "meters",
}
"""The public names, and the room of each."""

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _load_torch()
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


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
