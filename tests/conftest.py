"""One thread for every test process, because several of them share few cores; which tests run, and in which order."""

import gc
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
# A kernel that several tests measure is compiled once, whichever process runs them.
os.environ.setdefault("LABS_COMPILE_CACHE", str(Path(__file__).resolve().parents[1] / "build" / "compiled"))

pytest_plugins = ["tests.selection", "tests.order"]


def pytest_collection_finish() -> None:
    """Let the garbage collector, and the memory meter that asks it for objects, pass over what is imported by now.

    There are millions of objects of libraries and of tests; to look through them takes half a second each time.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """What is passed over is not taken down at the end either, and libraries complain of that."""
    gc.unfreeze()
