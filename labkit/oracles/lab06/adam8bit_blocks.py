"""Lab 06: what is wrong with blocks of one-byte numbers, with their scales, and with what comes back.

The steps of an optimizer that keeps its moments in them are in `adam8bit`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab06.adam8bit import Blocks
from labkit.spec import CaseRun

TINY = 1e-20
"""A scale that only a block of very small numbers has."""
IN_BLOCKS = ("form", "one block", "no abs", "zeros", "floor", "scale", "back", "above", "below", "not nearest")
"""Faults of quantize and dequantize."""


@dataclass(frozen=True)
class Fault:
    """What is wrong. `key` picks the hint; also: other keys that would explain it as well."""

    key: str
    text: str
    also: frozenset[str] = frozenset()

    @property
    def keys(self) -> frozenset[str]:
        return self.also | {self.key}


def find_in_blocks(run: CaseRun[Blocks]) -> Fault | None:
    case, x, got = run.case, run.tree["x"], run.got
    n_blocks = -(-x.numel() // case.block_size)
    for name, dtype, n in (("codes", torch.uint8, x.numel()), ("scales", torch.float32, n_blocks)):
        value = got[name]
        if not isinstance(value, Tensor):
            return Fault("form", f"{name} is a {type(value).__name__}, not a tensor")
        if name == "scales" and value.numel() == 1 < n_blocks:
            return Fault("one block", f"there is one scale for {n_blocks} blocks")
        if value.dtype != dtype or value.shape != (n,):
            have = f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
            return Fault("form", f"{name} is {have}, expected {str(dtype).removeprefix('torch.')} of shape ({n},)")
    blocks = F.pad(x.flatten(), (0, -x.numel() % case.block_size)).view(n_blocks, case.block_size)
    scales = blocks.abs().amax(1)
    back = got["back"]
    if not isinstance(back, Tensor) or back.dtype != torch.float32 or back.shape != x.shape:
        return Fault("back", f"dequantize did not return float32 of shape {tuple(x.shape)}")
    if back.isnan().any() or back.isinf().any():
        return Fault(
            "zeros",
            f"block {int((~back.isfinite()).flatten().nonzero()[0]) // case.block_size} came back as NaN or infinity",
        )
    off = (got["scales"] - scales).abs() > 1e-6 * scales
    if off.any():
        at = int(off.nonzero()[0])
        if torch.allclose(got["scales"], blocks.amax(1)) and not torch.allclose(blocks.amax(1), scales):
            return Fault("no abs", f"the scale of block {at} is {got['scales'][at]:.4g}, its largest element")
        shared = n_blocks > 1 and (got["scales"] == got["scales"][0]).all()
        key = "one block" if shared else "floor" if scales[at] < TINY else "scale"
        return Fault(key, f"the scale of block {at} is {got['scales'][at]:.4g}, its largest magnitude {scales[at]:.4g}")
    return find_in_codes(run, blocks, scales)


def find_in_codes(run: CaseRun[Blocks], blocks: Tensor, scales: Tensor) -> Fault | None:
    case, code_map = run.case, run.case.code_map()
    n = run.tree["x"].numel()
    each = scales.repeat_interleave(case.block_size)[:n]
    values = code_map[run.got["codes"].long()] * each
    if not torch.allclose(run.got["back"].flatten(), values, rtol=1e-5, atol=0):
        return Fault("back", "dequantize does not return code_map[codes] times the scale of the block")
    shares = torch.where(each > 0, run.tree["x"].flatten() / each, 0.0).double()
    chosen = code_map[run.got["codes"].long()].double()
    middles = (code_map[1:].double() + code_map[:-1].double()) / 2
    nearest = code_map[torch.bucketize(shares, middles)].double()
    worse = (chosen - shares).abs() - (nearest - shares).abs()
    off = worse > 1e-6 * shares.abs() + 1e-9
    if not off.any():
        return None
    at = int(worse.argmax())
    if (each[off] == 0).all():
        return Fault("zeros", f"element {at} of a block of zeros got the code of {chosen[at]:.6g}, not that of 0")
    text = (
        f"element {at} is {shares[at]:.6g} of its block's scale: it got the value {chosen[at]:.6g}, and "
        f"{nearest[at]:.6g} is nearer"
    )
    if (each[off] < TINY).all():
        return Fault("floor", text)
    above = ((chosen >= shares - 1e-7) | (chosen == code_map[-1])).all()
    below = ((chosen <= shares + 1e-7) | (chosen == code_map[0])).all()
    return Fault("above" if above else "below" if below else "not nearest", text)
