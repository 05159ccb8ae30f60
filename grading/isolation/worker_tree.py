"""The files that a worker may import: labkit without its oracles, and the worker itself. Nothing of the solutions,
the hidden cases or the supervisor is in it.
"""

from __future__ import annotations

import atexit
import compileall
import functools
import shutil
import tempfile
from pathlib import Path

import grading
import labkit
from grading.isolation.plan import interpreter, library_paths
from grading.remains import remove_at_the_end
from grading.worker.confine.plan import Plan

ABSENT = ("oracles",)
FONTS = "fonts"
"""Where in the tree matplotlib's list of the machine's fonts lies, which takes it a second to make."""


@functools.cache
def shared_worker_tree() -> Path:
    """The worker's files, made once for all the sandboxes of this process."""
    home = Path(tempfile.mkdtemp(prefix="grading-tree-"))
    remove_at_the_end(home)
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return make_worker_tree(home / "tree")


def make_worker_tree(folder: Path) -> Path:
    """Copy what a worker needs into `folder`, which must not exist, and return it. Any user may read it."""
    skip = shutil.ignore_patterns("__pycache__", *ABSENT)
    shutil.copytree(Path(labkit.__file__).parent, folder / "labkit", ignore=skip)
    shutil.copytree(Path(grading.__file__).parent / "worker", folder / "grading" / "worker", ignore=skip)
    (folder / "grading" / "__init__.py").write_text('"""The worker\'s side alone."""\n')
    compileall.compile_dir(folder, quiet=2)
    _copy_list_of_fonts(folder / FONTS)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def _copy_list_of_fonts(folder: Path) -> None:
    # Made and stored by this import, where this user has none yet.
    import matplotlib.font_manager

    folder.mkdir()
    for path in Path(matplotlib.get_cachedir()).glob("fontlist-*.json"):
        shutil.copy(path, folder)


def python_command(tree: Path, control_fd: int, plan: Plan, root: Path) -> list[str]:
    """Start the forking process, commanded through `control_fd`, with `tree` and the libraries as its import path.

    Without the site module no .pth file is read, so an editable install does not bring the repository back in.
    """
    path = [str(tree.resolve()), *library_paths()]
    start = "from grading.worker.forkserver import main"
    call = f"main({control_fd}, {plan.to_json()!r}, {str(root)!r})"
    # Not isolated by -I, which would also ignore the hash seed: the environment is clean by itself.
    return [interpreter(), "-P", "-s", "-S", "-B", "-c", f"import sys; sys.path[:] = {path!r}; {start}; {call}"]
