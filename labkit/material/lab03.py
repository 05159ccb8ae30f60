"""Lab 03: what autocast really does with a block, on this machine's CPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from labkit.exercises.lab03.autocast_ops import SIDE, Op, call


def measured_on_cpu(ops: Iterable[Op], given: Mapping[str, torch.dtype], low: torch.dtype) -> dict[str, torch.dtype]:
    """The dtype of every result when the block is run on the CPU under torch.autocast("cpu", low)."""
    values = {name: torch.ones(SIDE, SIDE, dtype=dtype) for name, dtype in given.items()}
    dtypes = {}
    with torch.no_grad(), torch.autocast("cpu", dtype=low):
        for op in ops:
            values[op.result] = call(op.function, (values[name] for name in op.inputs))
            dtypes[op.result] = values[op.result].dtype
    return dtypes
