"""The files that a worker may import: labkit without its oracles, and the worker itself. Nothing of the solutions,
the hidden cases or the supervisor is in it.
"""

from __future__ import annotations

import atexit
import compileall
import functools
import importlib.util
import shutil
import tempfile
from pathlib import Path

import grading.worker
import labkit
from grading import own_labs
from grading.isolation.plan import interpreter, library_paths
from grading.remains import remove_at_the_end
from grading.worker.confine.plan import Plan

ABSENT = ("oracles",)
OF_A_LAB = ("exercises", "material")
"""What of a lab that is not in this repository a worker imports."""
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
    for package, inside in ((labkit, "labkit"), (grading.worker, "grading/worker")):
        _copy_package(Path(package.__file__).parent, folder / inside)
    for own in own_labs.folders():
        for path in (path for room in OF_A_LAB for path in (own / "labkit" / room).glob("lab[0-9][0-9]*")):
            copied = folder / path.relative_to(own)
            if path.is_dir():
                _copy_package(path, copied)
            else:
                shutil.copyfile(path, copied)
    (folder / "grading" / "__init__.py").write_text('"""The worker\'s side alone."""\n')
    # What Python has compiled already is not compiled again, which takes a second.
    compileall.compile_dir(folder, quiet=2)
    _copy_list_of_fonts(folder / FONTS)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def _copy_package(source: Path, copy: Path) -> None:
    """Its modules, and what Python has compiled of them: of no other module, whatever else lies in `__pycache__`."""
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", *ABSENT))
    for module in sorted(copy.rglob("*.py")):
        original = source / module.relative_to(copy)
        try:
            compiled = Path(importlib.util.cache_from_source(str(original), optimization="")).read_bytes()
        except OSError:
            # It is not there, or not for this user.
            continue
        kept = Path(importlib.util.cache_from_source(str(module), optimization=""))
        kept.parent.mkdir(exist_ok=True)
        # Found to be stale by the time of the module's last change, which is copied as well.
        kept.write_bytes(compiled)


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
