"""Lab 99 in every registry, and one forking process for all tests of a module."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from pathlib import Path

import pytest

from grading.isolation.probe import try_tier
from grading.supervisor import Forkserver

HALVES = {"labkit.exercises.lab99": "exercises", "labkit.oracles.lab99": "oracles", "grading.hidden.lab99": "hidden"}


@pytest.fixture(scope="module")
def lab99():
    for registered, name in HALVES.items():
        sys.modules[registered] = importlib.import_module(f"tests.grading.lab99.{name}")
    yield
    for registered in HALVES:
        del sys.modules[registered]


@pytest.fixture(scope="module")
def forkserver(lab99):
    best = "kernel" if try_tier("kernel").works else "none"
    with Forkserver(os.environ.get("LABS_ISOLATION", best)) as server:
        declared = Path(__file__).parent / "lab99" / "exercises.py"
        shutil.copy(declared, server.tree / "labkit" / "exercises" / "lab99.py")
        yield server
