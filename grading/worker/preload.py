"""What the forking process loads before its first job, so that no job pays for it.

What is to be loaded is the plan's to say. It must leave no thread behind, because a fork of a process with threads may
hang.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

_FONTS = Path(__file__).parents[2] / "fonts"


def preload(modules: Sequence[str]) -> None:
    """Load these modules and what goes with them. Raises RuntimeError where a thread is left."""
    # matplotlib looks for its list of fonts there, and would make it anew.
    for path in _FONTS.iterdir():
        shutil.copy(path, os.environ["MPLCONFIGDIR"])
    for name in modules:
        importlib.import_module(name)
    if "torch" in modules:
        import torch

        import labkit
        from labkit import exercises

        torch.set_num_threads(1)
        exercises.everything()
        for name in labkit.__all__:
            getattr(labkit, name)  # loaded here and not in every job
    if "grading.worker.job" in modules:
        from grading.worker.rehearsal import rehearse

        rehearse()
    n_threads = len(os.listdir("/proc/self/task"))
    if n_threads != 1:
        raise RuntimeError(f"the forking process has {n_threads} threads after loading; a fork of it could hang")
