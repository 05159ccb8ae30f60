"""Lab 08, 4-bit NormalFloat: the published code, the bits kept, the error allowed; what the mistakes look like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab08.nf4 import BLOCK, SECOND_BLOCK, Weights, another
from labkit.oracles.calls import as_call
from labkit.oracles.lab08.nf4_read import CODEBOOK, Read, bits_per_weight, blocks_of, nearest, read
from labkit.oracles.lab08.small_task import loss_after_training
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

MOST_BITS = {True: 4.15, False: 4.52}
"""Bits kept for a weight with quantized scales and with float32 scales, from MANY weights on."""
LEAST_BITS = 4 + 8 / BLOCK
"""Bits for a weight below which codes and scales cannot both be there, whether the scales are quantized or not."""
MANY = 2**16
SMALLEST_NORMAL_FLOAT16 = 2.0**-14
WORSE = 1.02


def right_kinds(run: CaseRun) -> str | None:
    codebook, state, back = run.got["codebook"], run.got["state"], run.got["back"]
    if not isinstance(codebook, torch.Tensor) or codebook.dtype != torch.float32 or codebook.shape != (16,):
        return f"nf4_codebook should return a float32 tensor of 16 values, and returned {_kind(codebook)}"
    if not isinstance(state, dict) or not all(isinstance(item, torch.Tensor) for item in state.values()):
        return "quantize_nf4 should return a dict of tensors and nothing else: what is kept is counted in their bytes"
    if not isinstance(back, torch.Tensor) or back.dtype != torch.float32 or back.shape != run.tree["w"].shape:
        return f"dequantize_nf4 should return a float32 tensor of shape {run.case.shape}, and returned {_kind(back)}"
    return None if back.isfinite().all() else "dequantize_nf4 gave values that are not finite"


def _kind(value: object) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"


def published_code(run: CaseRun) -> str | None:
    wanted = torch.tensor(CODEBOOK)
    off = (run.got["codebook"] - wanted).abs()
    if bool((off <= 1e-4).all()):
        return None
    at = int((~(off <= 1e-4)).nonzero()[0])
    return f"code {at} is {float(run.got['codebook'][at]):.6g}, but {CODEBOOK[at]:.6g} was published"


def few_bits(run: CaseRun) -> str | None:
    bits, most = bits_per_weight(run), MOST_BITS[run.case.double]
    if bits < LEAST_BITS:
        return f"the state has {bits:.3f} bits for a weight, too few for the codes and a scale for each {BLOCK}"
    if run.case.numel < MANY:
        return None
    return f"{bits:.3f} bits are kept for a weight; at most {most} are allowed" if bits > most else None


def all_in_the_state(run: CaseRun) -> str | None:
    if run.got["stays"] is True:
        return None
    return "dequantize_nf4 gives something else once a weight of another size was quantized"


def zeros_stay(run: CaseRun) -> str | None:
    found = read(run)
    off = (found.scale == 0) & (found.back != 0).any(1)
    return f"block {int(off.nonzero()[0])} has only zeros, and came back with others" if off.any() else None


def right_scales(run: CaseRun) -> str | None:
    found = read(run)
    off = (found.used - found.scale).abs() > found.scale_allowed()
    if not off.any():
        return None
    at = int(off.nonzero()[0])
    return (
        f"the largest weight of block {at} has magnitude {found.scale[at]:.6g} and came back with "
        f"{found.used[at]:.6g}; off by {found.scale_allowed()[at]:.2g} is the most"
    )


def nearest_codes(run: CaseRun) -> str | None:
    found = read(run)
    bad = found.off_grid() | found.not_nearest()
    if not bad.any():
        return None
    row, column = bad.nonzero()[0].tolist()
    u, code = found.wanted("scale")[row, column], found.codes[row, column]
    return f"a weight of {u:.4g} x scale came back as {code:.4g} x scale, which is not the nearest code"


def trains_as_well(run: CaseRun) -> str | None:
    """QLoRA's loss is LoRA's, but for 2 %."""
    if not run.case.task:
        return None
    lora, qlora = loss_after_training(run.tree["w"], run.tree["w"]), loss_after_training(run.tree["w"], run.got["back"])
    if qlora <= WORSE * lora:
        return None
    return (
        f"an update trained over the 4-bit weight ends at a loss of {qlora:.4f}, over the weight itself at {lora:.4f}"
    )


def reads(holds):
    """A hint's condition on what is read from the values."""
    return lambda run: holds(read(run))


def without_double(holds: Callable[[Read], bool]) -> Callable[[CaseRun[Weights]], object]:
    """As `reads`, of scales that are kept as they are: 8-bit ones are off by a step in any case."""
    return lambda run: CANNOT_TELL if run.case.double else holds(read(run))


def _scales_of_another(run: CaseRun[Weights]) -> bool:
    """The largest weights came back with the scales of the weight that was quantized in between."""
    found, other = (read(replace(run, tree={"w": w})) for w in (run.tree["w"], another(run.tree["w"])))
    scale = other.scale
    return right_scales(run) is not None and bool(((found.used - scale).abs() <= 0.02 * scale).float().mean() > 0.9)


def _one_scale(found: Read) -> bool:
    """The largest element of each block came back as if the scale were that of the whole tensor."""
    whole = found.w.abs().max()
    return bool((nearest(found.back / whole) < 1e-3).all()) and bool((found.scale < 0.9 * whole).any())


def _other_blocks(found: Read) -> bool:
    """Blocks of another power of two explain the values, and blocks of 64 do not."""
    return not _explained_by(found, BLOCK) and any(_explained_by(found, size) for size in (16, 32, 128, 256))


def _explained_by(found: Read, size: int) -> bool:
    n = found.case.numel
    w, back = (blocks_of(part.reshape(-1)[:n], size) for part in (found.w, found.back))
    scale = w.abs().amax(1, keepdim=True).clamp_min(1e-30)
    return bool((nearest(back / scale) < 2e-3).float().mean() > 0.99)


def _swapped(found: Read) -> bool:
    """Each weight came back in its neighbour's place."""
    w, back = found.w.reshape(-1, 2), found.back.reshape(-1, 2)
    wrong, right = (w - back).square().mean(), (w - back.flip(1)).square().mean()
    return bool(20 * right < wrong)


def _evenly_spaced(values: torch.Tensor) -> bool:
    used = values.double().reshape(-1).sort().values
    steps = used.diff()
    steps = steps[steps > 1e-3]
    return len(steps) >= 10 and bool((steps - steps.median()).abs().max() < 0.02 * steps.median())


def _half_precision_scales(found: Read) -> bool:
    """Off by 8 or 11 bits of precision; scales too small for a normal float16 may be off by any factor."""
    off, normal = (found.used - found.scale).abs(), found.scale >= SMALLEST_NORMAL_FLOAT16
    return not found.case.double and bool(
        (off > found.scale_allowed()).any() and (off <= 4.2e-3 * found.scale)[normal].all()
    )


def _rounded_down(found: Read) -> bool:
    """Every code that is not the nearest lies below the weight, or every one above."""
    if not found.not_nearest().any() or found.off_grid().any():
        return False
    off = (found.codes - found.wanted("scale"))[found.not_nearest()]
    return bool((off < 0).all() or (off > 0).all())


def _largest_not_magnitude(found: Read) -> bool:
    """The scale of each block is its largest weight, whatever the negative ones are."""
    allowed, largest = found.scale_allowed(), found.w.amax(1)
    off = (found.used - found.scale).abs() > allowed
    return bool(off.any()) and bool(((found.used - largest).abs() <= allowed)[largest > 0].all())


def _only_the_last_weights(found: Read) -> bool:
    """All is right but in the last block, which is a short one, or in the group that has its scale in it."""
    first = len(found.w) - 1
    if found.case.double:
        first -= first % SECOND_BLOCK
    if found.case.numel % BLOCK == 0 or first == 0:
        return False
    return _all_right(found, slice(first)) and not _all_right(found, slice(first, None))


def _only_faint_blocks(found: Read) -> bool:
    faint = found.scale < 1e-3 * found.scale.amax()
    return bool(faint.any()) and _all_right(found, ~faint) and not _all_right(found, faint)


def _all_right(found: Read, blocks: slice | torch.Tensor) -> bool:
    """The scales of these blocks are as near as they have to be, and their codes the nearest."""
    part = Read(found.case, found.w[blocks], found.back[blocks])
    near = (part.used - part.scale).abs() <= found.scale_allowed()[blocks]
    return bool(near.all()) and not bool((part.off_grid() | part.not_nearest()).any())


def _quantized_for_nothing(found: Read) -> bool:
    """float32 scales that are as far off as those of 8 bits may be."""
    double = Read(replace(found.case, double=True), found.w, found.back)
    off = (found.used - found.scale).abs()
    return not found.case.double and bool((off > found.scale_allowed()).any() and (off <= double.scale_allowed()).all())


def _one_sided(found: Read) -> bool:
    """The scales that are off too far are all too small, or all nearer to the mean."""
    off, allowed = found.used - found.scale, found.scale_allowed()
    bad = off.abs() > allowed
    inward = -(found.scale - found.scale.mean()).sign()
    return bool(bad.any()) and bool((off[bad] < 0).all() or (off[bad] * inward[bad] > 0).all())


def _largest_is_second(found: Read) -> bool:
    """In many blocks, the largest weight came back with the second largest code, as if it were no code itself."""
    second = (found.used / found.scale.clamp_min(1e-30) - CODEBOOK[-2]).abs() < 0.02
    return bool(second.float().mean() > 0.2)


NF4 = Oracle(
    id="08-nf4",
    judge=(
        right_kinds,
        published_code,
        few_bits,
        all_in_the_state,
        zeros_stay,
        right_scales,
        nearest_codes,
        trains_as_well,
        inputs_untouched,
    ),
    call=lambda run: as_call("quantize_nf4", run.tree["w"], double=run.case.double),
    axis="shapes, odd numbers of weights, blocks of zeros or tiny weights, outliers",
    diagnose=(
        Hint(
            lambda run: _evenly_spaced(run.got["codebook"]),
            "These are 16 evenly spaced values, an ordinary 4-bit integer. NormalFloat takes quantiles of the normal "
            "distribution, which are dense around 0.",
        ),
        Hint(
            lambda run: not (run.got["codebook"] == 0).any(),
            "Zero is not among the codes, so no zero would survive. The negative and the positive half are made apart, "
            "with 0 between them: 7 values below it and 8 above.",
        ),
        Hint(
            lambda run: float(run.got["codebook"].abs().max()) > 1.01,
            "The code should reach from -1 to 1: divide the quantiles by the largest.",
        ),
        Hint(
            lambda run: (run.got["codebook"] + torch.tensor(CODEBOOK).flip(0)).abs().max() < 1e-3,
            "The code is mirrored: 8 of its values are positive and 7 negative.",
        ),
        Hint(
            lambda run: bool((run.got["codebook"].diff() <= 0).any()),
            "The values are not in ascending order: sort them, from -1 to 1.",
        ),
        Hint(
            published_code,
            "Take 9 evenly spaced probabilities from 0.9677083 to 0.5 for the positive half and 8 for the negative "
            "one, without the 0.5; their quantiles, divided by the largest, and a 0.",
        ),
        Hint(
            lambda run: run.got["back"].isnan().any() or zeros_stay(run),
            "A block of zeros has the scale 0, and 0 / 0 is NaN. Divide by another number there; any will do.",
        ),
        Hint(
            lambda run: bits_per_weight(run) < LEAST_BITS or not run.got["stays"] or _scales_of_another(run),
            "Something is kept outside of the state, and belongs to whatever was quantized last. All that "
            "dequantize_nf4 needs has to be in the dict.",
        ),
        Hint(
            lambda run: few_bits(run) and bits_per_weight(run) > 7.9,
            "A code of 4 bits takes a byte or more for itself. Pack two into each uint8: high * 16 + low.",
        ),
        Hint(
            lambda run: run.case.double and few_bits(run) and bits_per_weight(run) < 4.2,
            "The zeros that filled up the last group of scales are kept too. Cut them off before they go into the "
            "dict.",
        ),
        Hint(
            lambda run: run.case.double and few_bits(run) and bits_per_weight(run) < 4.6,
            "The scales were quantized once only, to floats: 32 bits for 64 weights are half a bit for each. With "
            "double=True keep one byte for each scale.",
        ),
        Hint(
            few_bits,
            "More is kept than codes and scales. A weight has 4 bits, a block of 64 one scale, and 256 scales "
            "share one float32.",
        ),
        Hint(
            reads(_swapped),
            "Neighbours came back in each other's place: packing and unpacking disagree on which code is in the upper "
            "four bits.",
        ),
        Hint(
            reads(_one_scale),
            "The whole tensor has one scale, so that one outlier costs all the others their precision. Every 64 "
            "weights need their own.",
        ),
        Hint(
            without_double(_largest_not_magnitude),
            "The scale of a block is not its largest magnitude: in blocks whose largest weight is negative, take "
            ".abs() before .amax().",
        ),
        Hint(
            reads(_only_the_last_weights),
            "Only the end of the weight is wrong, where a block is shorter than 64 or a byte holds one code alone. "
            "Fill up with zeros before, and cut them off afterwards.",
        ),
        Hint(
            reads(_only_faint_blocks),
            "Blocks of tiny weights are wrong: a small constant stands in for their scale. Replace the scale where it "
            "is exactly 0, and nowhere else.",
        ),
        Hint(
            reads(_largest_is_second),
            "The largest weight of a block came back as the second largest code. Compare with the midpoints between "
            "codes, not with the codes.",
        ),
        Hint(
            without_double(_other_blocks),
            f"The blocks are not of {BLOCK} weights in a row, in the order of w.flatten().",
        ),
        Hint(
            reads(
                lambda found: (
                    found.case.double
                    and right_scales_are(found, False)
                    and bool(((found.used - found.scale).abs() > found.scale_allowed()).any())
                )
            ),
            "The scales lost more than half a step of their 8 bits. Take their mean off first, and keep steps and mean "
            "in float32.",
        ),
        Hint(
            reads(lambda found: found.case.double and _one_sided(found) and right_scales_are(found, True, steps=1.0)),
            "A scale is up to a whole step off: round to the nearest code; a cast to int8 cuts the fraction off.",
        ),
        Hint(
            reads(_half_precision_scales),
            "The scales were rounded to 16 bits. Without double they are float32.",
        ),
        Hint(
            reads(_quantized_for_nothing),
            "The scales are quantized with double=False too. Then they are kept as they are, in float32.",
        ),
        Hint(
            reads(lambda found: _evenly_spaced(found.codes.reshape(-1))),
            "The weights lie on 16 evenly spaced values: quantize to the nearest value of the codebook.",
        ),
        Hint(
            reads(_rounded_down),
            "The codes are always the next lower or always the next higher one. Compare with the midpoints between "
            "codes, not with the codes.",
        ),
        Hint(
            lambda run: run.case.double and right_scales(run),
            "The scales come back too far off. Take their mean off, and give every 256 of them a step of their own: "
            "the largest magnitude / 127.",
        ),
        Hint(
            reads(lambda found: bool(found.off_grid().any())),
            "What comes back is not codebook[code] times the scale of the block.",
        ),
    ),
)


def right_scales_are(found: Read, centred: bool, steps: float = 0.5) -> bool:
    return bool(((found.used - found.scale).abs() <= found.scale_allowed(centred, steps)).all())
