"""The files that a worker may import: what Python has compiled comes along, of modules that come along, and fresh."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from grading.isolation import worker_tree


@pytest.fixture
def package(tmp_path: Path, monkeypatch) -> Path:
    """A package in the place of labkit, with a module `plain`, and an oracle; both are compiled."""
    folder = tmp_path / "labkit"
    (folder / "oracles").mkdir(parents=True)
    for name in ("__init__", "plain", "oracles/secret"):
        (folder / f"{name}.py").write_text("value = 1\n")
        py_compile.compile(str(folder / f"{name}.py"))
    monkeypatch.setattr(worker_tree, "labkit", SimpleNamespace(__file__=str(folder / "__init__.py")))
    return folder


def compiled(module: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(module)))


def value_in(tree: Path) -> str:
    """What a worker, which writes no bytecode, finds in `plain`."""
    program = (
        f"import sys; sys.path[:0] = [{str(tree)!r}]; from labkit import plain; print(plain.value, plain.__file__)"
    )
    done = subprocess.run([sys.executable, "-S", "-B", "-c", program], capture_output=True, text=True, check=True)
    value, file = done.stdout.split()
    assert Path(file) == tree / "labkit" / "plain.py"
    return value


def test_what_is_compiled_comes_along_of_the_modules_that_do(package: Path, tmp_path: Path) -> None:
    (compiled(package / "gone.py")).write_bytes(b"of a module that was there once")
    before = compiled(package / "plain.py").read_bytes()
    tree = worker_tree.make_worker_tree(tmp_path / "tree")
    assert compiled(tree / "labkit" / "plain.py").read_bytes() == before
    assert not list(tree.rglob("*gone*")) and not list(tree.rglob("*secret*")) and not list(tree.rglob("*oracles*"))
    modules = list(tree.rglob("*.py"))
    assert all(compiled(module).is_file() for module in modules)
    assert len(list(tree.rglob("*.pyc"))) == len(modules)


def test_what_was_compiled_of_an_older_text_is_compiled_anew(package: Path, tmp_path: Path) -> None:
    """As of a module that was never compiled: another time of its last change says so, as to Python itself."""
    plain = package / "plain.py"
    plain.write_text("value = 2\n")
    os.utime(plain, (10**9, 10**9))
    compiled(package / "__init__.py").unlink()
    assert value_in(worker_tree.make_worker_tree(tmp_path / "tree")) == "2"
    assert compiled(tmp_path / "tree" / "labkit" / "__init__.py").is_file()
