"""One thread for every test process, because several of them share few cores; which tests run, and in which order."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["tests.selection", "tests.order"]
