"""One thread for every test process, because several of them share few cores; which tests run, and in which order."""

import atexit
import gc
import importlib
import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
# A kernel that several tests measure is compiled once, whichever process runs them.
os.environ.setdefault("LABS_COMPILE_CACHE", str(Path(__file__).resolve().parents[1] / "build" / "compiled"))

# What pytest_collection_finish sets aside is taken down at the very end all the same, or libraries complain of it:
# after all that others, who come later, do at the end. IPython collects garbage then, once for every shell of a test.
atexit.register(gc.unfreeze)

pytest_plugins = ["tests.selection", "tests.order"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Whoever calls pytest by hand, and not `make test-gpu`, may have no GPU."""
    if item.get_closest_marker("gpu") and not importlib.import_module("torch").cuda.is_available():
        pytest.skip("it needs an NVIDIA GPU: `make test-gpu` runs it where there is one")


def pytest_collection() -> None:
    """Collecting makes objects and no garbage: looking for some takes two seconds in each process."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector, and the memory meter that asks it for objects, pass over what is imported by now.

    There are millions of objects of libraries and of tests; to look through them takes half a second each time.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
