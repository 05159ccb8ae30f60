"""Labs 94 to 99, which only tests have, put where labs are looked for.

A half of such a lab is one file with all of its exercises, which stands for the module of each of them.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grading.isolation.worker_tree import make_worker_tree

FAKE_LABS = ("94", "95", "96", "97", "98", "99")
PACKAGES = {"exercises": "labkit.exercises", "oracles": "labkit.oracles", "hidden": "grading.hidden"}


@contextmanager
def registered(lab: str) -> Iterator[None]:
    """All three halves of the lab can be found in this process, and afterwards what was there before."""
    found = {}
    for half, package in PACKAGES.items():
        module = importlib.import_module(f"tests.grading.lab{lab}.{half}")
        found |= {f"{package}.lab{lab}{name}": module for name in ("", *(f".{name}" for name in _names(lab)))}
    before = {name: sys.modules.get(name) for name in found}
    sys.modules.update(found)
    try:
        yield
    finally:
        for name, module in before.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


@functools.cache
def tree_with_fake_labs() -> Path:
    """A worker's files with the first halves of all these labs, made once for the tests of a process."""
    home = Path(tempfile.mkdtemp(prefix="fake-labs-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    tree = make_worker_tree(home / "tree")
    for lab in FAKE_LABS:
        _copy_into(tree, lab)
    return tree


def _copy_into(tree: Path, lab: str) -> None:
    folder = tree / "labkit" / "exercises" / f"lab{lab}"
    folder.mkdir()
    shutil.copy(Path(__file__).parent / f"lab{lab}" / "exercises.py", folder / "__init__.py")
    for name in _names(lab):
        (folder / f"{name}.py").write_text(f"from labkit.exercises.lab{lab} import {name.upper()}\n")


def _names(lab: str) -> list[str]:
    order = importlib.import_module(f"tests.grading.lab{lab}.exercises").ORDER
    return [slug.replace("-", "_") for slug in order]
