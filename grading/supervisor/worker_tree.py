"""The files that a worker may import: labkit without its oracles, and the worker itself. Nothing of the solutions,
the hidden cases or the supervisor is in it.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

import grading
import labkit

ABSENT = ("oracles",)


def make_worker_tree(folder: Path) -> Path:
    """Copy what a worker needs into `folder`, which must be empty, and return it."""
    skip = shutil.ignore_patterns("__pycache__", *ABSENT)
    shutil.copytree(Path(labkit.__file__).parent, folder / "labkit", ignore=skip)
    shutil.copytree(Path(grading.__file__).parent / "worker", folder / "grading" / "worker", ignore=skip)
    (folder / "grading" / "__init__.py").write_text('"""The worker\'s side alone."""\n')
    return folder


def worker_command(tree: Path, control_fd: int) -> list[str]:
    """Start the forking process, commanded through `control_fd`, with `tree` and the libraries as its import path.

    Without the site module no .pth file is read, so an editable install does not bring the repository back in.
    """
    paths = sysconfig.get_paths()
    libraries = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    dynload = str(Path(paths["stdlib"]) / "lib-dynload")
    path = list(dict.fromkeys([str(tree), *libraries, dynload]))
    start = f"import sys; sys.path[:] = {path!r}; from grading.worker.forkserver import main; main({control_fd})"
    return [sys.executable, "-I", "-S", "-c", start]
