"""One thread for every test process, because several of them share few cores; which tests run, and in which order."""

import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
# A kernel that several tests measure is compiled once, whichever process runs them.
os.environ.setdefault("LABS_COMPILE_CACHE", str(Path(__file__).resolve().parents[1] / "build" / "compiled"))

pytest_plugins = ["tests.selection", "tests.order"]
