"""Lab 08, 4-bit NormalFloat: the published code, the bits kept, the error allowed; what the mistakes look like."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab08.nf4 import BLOCK
from labkit.oracles.calls import as_call
from labkit.oracles.lab08.nf4_mistakes import (
    codes_of_others,
    evenly_spaced,
    half_precision_scales,
    largest_is_second,
    largest_not_magnitude,
    one_scale,
    one_sided,
    only_faint_blocks,
    only_the_last_weights,
    other_blocks,
    quantized_for_nothing,
    reads,
    right_scales_are,
    rounded_down,
    scales_of_another,
    swapped,
    undivided,
    without_double,
)
from labkit.oracles.lab08.nf4_read import CODEBOOK, bits_per_weight, read
from labkit.oracles.lab08.small_task import loss_after_training
from labkit.spec import CaseRun, Hint, Oracle

MOST_BITS = {True: 4.15, False: 4.52}
"""Bits kept for a weight with quantized scales and with float32 scales, from MANY weights on."""
LEAST_BITS = 4 + 8 / BLOCK
"""Bits for a weight below which codes and scales cannot both be there, whether the scales are quantized or not."""
MANY = 2**16
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
    return f"dequantize_nf4 gives something else once another weight was quantized, with double={not run.case.double}"


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
            lambda run: evenly_spaced(run.got["codebook"]),
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
            lambda run: bits_per_weight(run) < LEAST_BITS or not run.got["stays"] or scales_of_another(run),
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
            reads(swapped),
            "Neighbours came back in each other's place: packing and unpacking disagree on which code is in the upper "
            "four bits.",
        ),
        Hint(
            reads(undivided),
            "The codes are those nearest to the weights themselves. Divide each weight by the scale of its block "
            "first, then look for the nearest code.",
        ),
        Hint(
            reads(one_scale),
            "The whole tensor has one scale, so that one outlier costs all the others their precision. Every 64 "
            "weights need their own.",
        ),
        Hint(
            without_double(largest_not_magnitude),
            "The scale of a block is not its largest magnitude: in blocks whose largest weight is negative, take "
            ".abs() before .amax().",
        ),
        Hint(
            reads(only_the_last_weights),
            "Only the end of the weight is wrong, where a block is shorter than 64 or a byte holds one code alone. "
            "Fill up with zeros before, and cut them off afterwards.",
        ),
        Hint(
            reads(only_faint_blocks),
            "Blocks of tiny weights are wrong: a small constant stands in for their scale. Replace the scale where it "
            "is exactly 0, and nowhere else.",
        ),
        Hint(
            reads(largest_is_second),
            "The largest weight of a block came back as the second largest code. Compare with the midpoints between "
            "codes, not with the codes.",
        ),
        Hint(
            without_double(other_blocks),
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
            "The scales lost more than half a step of their 8 bits. Take their mean off first, that of the scales "
            "without any padding, and keep steps and mean in float32.",
        ),
        Hint(
            reads(lambda found: found.case.double and one_sided(found) and right_scales_are(found, True, steps=1.0)),
            "A scale is up to a whole step off: round to the nearest code; a cast to int8 cuts the fraction off.",
        ),
        Hint(
            reads(half_precision_scales),
            "The scales were rounded to 16 bits. Without double they are float32.",
        ),
        Hint(
            reads(quantized_for_nothing),
            "The scales are quantized with double=False too. Then they are kept as they are, in float32.",
        ),
        Hint(
            reads(lambda found: evenly_spaced(found.codes.reshape(-1))),
            "The weights lie on 16 evenly spaced values: quantize to the nearest value of the codebook.",
        ),
        Hint(
            reads(rounded_down),
            "The codes are always the next lower or always the next higher one. Compare with the midpoints between "
            "codes, not with the codes.",
        ),
        Hint(
            lambda run: run.case.double and right_scales(run),
            "The scales come back too far off. Take their mean off, and give every 256 of them a step of their own: "
            "the largest magnitude / 127.",
        ),
        Hint(
            without_double(codes_of_others),
            "The codes are right, and many weights have got the code of another weight: packing and unpacking "
            "disagree on which two codes share a byte.",
        ),
        Hint(
            reads(lambda found: bool(found.off_grid().any())),
            "What comes back is not codebook[code] times the scale of the block.",
        ),
    ),
)
