"""Products in bfloat16 that leave no memory behind.

oneDNN keeps buffers for every shape of product in bfloat16, which no meter sees: 1.6 to 2.3 MiB for each linear layer
of another width near 1,040, forward and back, where PyTorch's own products kept 0.04 MiB. Who compares what a process
holds with what its tensors take runs the products without oneDNN. They are slower, and sum up in another order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class _Users:
    """How many run without oneDNN now, and whether it was there before: simulated ranks are threads of one process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n = 0
        self.was_enabled = True


_USERS = _Users()


@contextmanager
def without_onednn() -> Iterator[None]:
    """Until the last of those who asked for it has ended, this process multiplies without oneDNN."""
    with _USERS.lock:
        if _USERS.n == 0:
            # Not torch.backends.mkldnn.flags, which warns of GPUs that are not there.
            _USERS.was_enabled = torch._C._get_mkldnn_enabled()
            torch._C._set_mkldnn_enabled(False)
        _USERS.n += 1
    try:
        yield
    finally:
        with _USERS.lock:
            _USERS.n -= 1
            if _USERS.n == 0:
                torch._C._set_mkldnn_enabled(_USERS.was_enabled)
