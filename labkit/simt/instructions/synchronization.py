"""Fences and __syncwarp(). Barriers of a block end a basic block and are in `barriers`."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt.program import Instruction
from labkit.simt.values import Step, refuse

SCOPES = {"gl", "sys", "gpu"}


def fence(one: Instruction, pc: int) -> Step:
    """membar, fence: here every write is seen at once; that it was asked for counts against races between blocks."""
    wide = bool(SCOPES & set(one.modifiers))
    if set(one.modifiers) - SCOPES - {"cta", "sc", "acq_rel", "proxy", "async"}:
        raise refuse(one)
    return lambda m: m.fence() if wide else None


def sync_warp(one: Instruction, pc: int) -> Step:
    """bar.warp.sync: orders the accesses of the warp's lanes."""

    def run(m: Any) -> None:
        m.shadow.sync_warps(np.asarray(m.mask.by_warp.any(2), np.int64))

    return run


TABLE = {"bar": sync_warp, "barrier": sync_warp, "membar": fence, "fence": fence}
