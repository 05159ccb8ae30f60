"""Tensors of whole KiB, small enough to count by hand."""

from __future__ import annotations

import torch

KIB = 1024


def vector(n_kib: int = 4, **settings: object) -> torch.Tensor:
    return torch.ones(n_kib * KIB // 4, **settings)
