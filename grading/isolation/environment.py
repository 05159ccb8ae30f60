"""The environment variables of a worker and its jobs: the same for every run, and nothing of the instructor's."""

from __future__ import annotations

import os
from pathlib import Path

from labkit.forking import FORKED_FROM


def environment(home: Path) -> dict[str, str]:
    """A clean environment: one thread, the same hash seed, and none of the instructor's variables."""
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        # Nobody by that number is in the sandbox's list of users.
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        # Also where honest code asks for more: their stacks would count as memory that it holds, and a job that may
        # start no thread would end.
        "OMP_THREAD_LIMIT": "1",
        "PYTHONHASHSEED": "0",
        **FORKED_FROM,
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        # Larger blocks go back to the system when they are freed, so that memory can be read from outside: well below
        # what a witness lets pass, well above the blocks that an answer which spares memory takes again and again.
        "MALLOC_MMAP_THRESHOLD_": str(1024 * 1024),
        "MALLOC_TRIM_THRESHOLD_": str(2048 * 1024),
        # And so do stacks of threads that have ended: the C library keeps 40 MiB of them else.
        "GLIBC_TUNABLES": "glibc.pthread.stack_cache_size=0",
    }
