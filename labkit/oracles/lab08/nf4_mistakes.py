"""Lab 08, 4-bit NormalFloat: what the usual mistakes look like in the codes and scales that an answer keeps.

The right code, the bits and the error are judged in nf4.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from labkit.exercises.lab08.nf4 import BLOCK, SECOND_BLOCK, Weights, another
from labkit.oracles.lab08.nf4_read import CODEBOOK, Read, blocks_of, code_of, nearest, read
from labkit.spec import CANNOT_TELL, CaseRun

SMALLEST_NORMAL_FLOAT16 = 2.0**-14


def reads(holds):
    """A hint's condition on what is read from the values."""
    return lambda run: holds(read(run))


def without_double(holds: Callable[[Read], bool]) -> Callable[[CaseRun[Weights]], object]:
    """As `reads`, of scales that are kept as they are: 8-bit ones are off by a step in any case."""
    return lambda run: CANNOT_TELL if run.case.double else holds(read(run))


def scales_of_another(run: CaseRun[Weights]) -> bool:
    """The largest weights came back with the scales of the weight that was quantized in between."""
    found, other = (read(replace(run, tree={"w": w})) for w in (run.tree["w"], another(run.tree["w"])))
    wrong = (found.used - found.scale).abs() > found.scale_allowed()
    theirs = (found.used - other.scale).abs() <= 0.02 * other.scale
    return bool(wrong.any() and theirs.float().mean() > 0.9)


def one_scale(found: Read) -> bool:
    """The largest element of each block came back as if the scale were that of the whole tensor."""
    whole = found.w.abs().max()
    return bool((nearest(found.back / whole) < 1e-3).all()) and bool((found.scale < 0.9 * whole).any())


def other_blocks(found: Read) -> bool:
    """Blocks of another power of two explain the values, and blocks of 64 do not."""
    return not explained_by(found, BLOCK) and any(explained_by(found, size) for size in (16, 32, 128, 256))


def explained_by(found: Read, size: int) -> bool:
    n = found.case.numel
    w, back = (blocks_of(part.reshape(-1)[:n], size) for part in (found.w, found.back))
    scale = w.abs().amax(1, keepdim=True).clamp_min(1e-30)
    return bool((nearest(back / scale) < 2e-3).float().mean() > 0.99)


def swapped(found: Read) -> bool:
    """Each weight came back in its neighbour's place."""
    w, back = found.w.reshape(-1, 2), found.back.reshape(-1, 2)
    wrong, right = (w - back).square().mean(), (w - back.flip(1)).square().mean()
    return bool(20 * right < wrong)


def undivided(found: Read) -> object:
    """The codes were chosen for the weights as they are, and multiplied by the right scales."""
    scale, allowed = found.scale[:, None], found.scale_allowed()[:, None]
    codes, right = code_of(found.w), code_of(found.w / scale.clamp_min(1e-30))
    if torch.equal(codes, right):
        return CANNOT_TELL
    return bool(((found.back - codes * scale).abs() <= codes.abs() * allowed + 1e-6 * scale).all())


def codes_of_others(found: Read) -> bool:
    """As many weights have each code as should, but for as many as fill up the last block, and they are others."""
    there, n_more = found.scale > 0, -found.case.numel % BLOCK
    right, used = (code_of((part[there] / found.scale[there, None]).reshape(-1)) for part in (found.w, found.back))
    off_grid = nearest((found.back[there] / found.scale[there, None]).reshape(-1)) > 2e-3
    codes = torch.tensor(CODEBOOK, dtype=torch.float64)
    n_moved = sum(abs(int((right == code).sum() - (used == code).sum())) for code in codes)
    return not off_grid.any() and n_moved <= 2 * n_more and bool((right != used).float().mean() > 0.1)


def evenly_spaced(values: torch.Tensor) -> bool:
    used = values.double().reshape(-1).sort().values
    steps = used.diff()
    steps = steps[steps > 1e-3]
    return len(steps) >= 10 and bool((steps - steps.median()).abs().max() < 0.02 * steps.median())


def half_precision_scales(found: Read) -> bool:
    """Off by 8 or 11 bits of precision; scales too small for a normal float16 may be off by any factor."""
    off, normal = (found.used - found.scale).abs(), found.scale >= SMALLEST_NORMAL_FLOAT16
    return not found.case.double and bool(
        (off > found.scale_allowed()).any() and (off <= 4.2e-3 * found.scale)[normal].all()
    )


def rounded_down(found: Read) -> bool:
    """Every code that is not the nearest lies below the weight, or every one above."""
    if not found.not_nearest().any() or found.off_grid().any():
        return False
    off = (found.codes - found.wanted("scale"))[found.not_nearest()]
    return bool((off < 0).all() or (off > 0).all())


def largest_not_magnitude(found: Read) -> bool:
    """The scale of each block is its largest weight, whatever the negative ones are."""
    allowed, largest = found.scale_allowed(), found.w.amax(1)
    off = (found.used - found.scale).abs() > allowed
    return bool(off.any()) and bool(((found.used - largest).abs() <= allowed)[largest > 0].all())


def only_the_last_weights(found: Read) -> bool:
    """All is right but in the last block, which is a short one, or in the group that has its scale in it."""
    first = len(found.w) - 1
    if found.case.double:
        first -= first % SECOND_BLOCK
    if found.case.numel % BLOCK == 0 or first == 0:
        return False
    return all_right(found, slice(first)) and not all_right(found, slice(first, None))


def only_faint_blocks(found: Read) -> bool:
    faint = found.scale < 1e-3 * found.scale.amax()
    return bool(faint.any()) and all_right(found, ~faint) and not all_right(found, faint)


def all_right(found: Read, blocks: slice | torch.Tensor) -> bool:
    """The scales of these blocks are as near as they have to be, and their codes the nearest."""
    part = Read(found.case, found.w[blocks], found.back[blocks])
    near = (part.used - part.scale).abs() <= found.scale_allowed()[blocks]
    return bool(near.all()) and not bool((part.off_grid() | part.not_nearest()).any())


def quantized_for_nothing(found: Read) -> bool:
    """float32 scales that are as far off as those of 8 bits may be."""
    double = Read(replace(found.case, double=True), found.w, found.back)
    off = (found.used - found.scale).abs()
    return not found.case.double and bool((off > found.scale_allowed()).any() and (off <= double.scale_allowed()).all())


def one_sided(found: Read) -> bool:
    """The scales that are off too far are all too small, or all nearer to the mean."""
    off, allowed = found.used - found.scale, found.scale_allowed()
    bad = off.abs() > allowed
    inward = -(found.scale - found.scale.mean()).sign()
    return bool(bad.any()) and bool((off[bad] < 0).all() or (off[bad] * inward[bad] > 0).all())


FEW_BLOCKS = 10
"""Among so many there may be none whose largest weight is positive."""


def largest_is_second(found: Read) -> object:
    """In many blocks, the largest weight came back with the second largest code, as if it were no code itself."""
    there = found.scale > 0
    second = (found.used[there] / found.scale[there] - CODEBOOK[-2]).abs() < 0.02
    if len(second) <= FEW_BLOCKS:
        return bool(second.any()) or CANNOT_TELL
    return bool(second.float().mean() > 0.2)


def right_scales_are(found: Read, centred: bool, steps: float = 0.5) -> bool:
    return bool(((found.used - found.scale).abs() <= found.scale_allowed(centred, steps)).all())
