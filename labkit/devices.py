"""Choose the CPU or the GPU once, and seed everything.

Importing this module switches Triton's interpreter on where there is no GPU (Triton decides when a kernel is
decorated, so the variable must stand before any kernel is defined), and silences one warning of PyTorch where there is
one. It does not move tensors for anybody.
"""

from __future__ import annotations

import os
import random
import warnings

import numpy as np
import torch


def has_gpu() -> bool:
    """Whether PyTorch can use a CUDA device on this machine."""
    return torch.cuda.is_available()


def device() -> torch.device:
    """`cuda` where there is a GPU, else `cpu`."""
    return torch.device("cuda" if has_gpu() else "cpu")


def seed_all(seed: int = 0) -> None:
    """Seed Python's, numpy's and PyTorch's global generators, on the CPU and on every GPU."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


if not has_gpu():
    os.environ.setdefault("TRITON_INTERPRET", "1")
else:
    # Said at the first product of a backward pass, in a thread of its own; PyTorch then does what is right.
    warnings.filterwarnings("ignore", message="Attempting to run cuBLAS, but there was no current CUDA context")
