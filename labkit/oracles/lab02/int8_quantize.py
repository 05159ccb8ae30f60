"""Lab 02, int8 quantization: properties of a good quantizer, and what the usual mistakes look like."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.oracles.calls import as_call
from labkit.oracles.lab02.quantized import GUARD, SLACK, Attempt, attempt, ends_of
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

DTYPES = {"q": torch.int8, "scale": torch.float32, "zero_point": torch.int32, "back": torch.float32}


def right_kinds(run: CaseRun) -> str | None:
    """Three tensors of the right dtypes and shapes, and a result like x."""
    got, x = run.got, run.tree["x"]
    if "made" in got:
        return "quantize_int8 should return three things: q, scale, zero_point"
    for name, value in got.items():
        if not isinstance(value, torch.Tensor):
            return f"{name} should be a tensor, not {_kind(value)}"
    wanted = tuple(ends_of(x, run.case.channel_dim)[0].shape)
    per = "per tensor" if run.case.channel_dim is None else f"per channel along axis {run.case.channel_dim}"
    for name, shape in (("q", x.shape), ("scale", wanted), ("zero_point", wanted), ("back", x.shape)):
        if got[name].shape != torch.Size(shape):
            return f"{_named(name)} should have shape {tuple(shape)} ({per}), not {tuple(got[name].shape)}"
    for name, dtype in DTYPES.items():
        if got[name].dtype != dtype:
            return f"{_named(name)} should be {_dtype(dtype)}, not {_dtype(got[name].dtype)}"
    if not (got["scale"].isfinite().all() and (got["scale"] > 0).all()):
        return f"every scale should be positive and finite; one is {_first_bad_scale(got['scale'])}"
    return None


def zero_stays_zero(run: CaseRun) -> str | None:
    """Zeros (padding, pruned weights, ReLU's output) must survive the way there and back."""
    off = (run.tree["x"] == 0) & (run.got["back"] != 0)
    if not off.any():
        return None
    return f"0.0 came back as {run.got['back'][off][0]:.6g}: zero must come back exactly"


def tight_scale(run: CaseRun) -> str | None:
    """The step is the smallest with which the range fits."""
    scale, steps = run.got["scale"], _steps(run)
    span = _span(run)
    off = (span > 0) & ((scale * steps - span).abs() > SLACK * span + GUARD * steps)
    if not off.any():
        return None
    wanted = "max|x| / 127" if run.case.symmetric else "(max - min) / 255, with 0 inside the range,"
    at = off.reshape(-1).nonzero()[0].item()
    return (
        f"{'scale' if scale.dim() == 0 else f'the scale of channel {at}'} is {scale.reshape(-1)[at]:.6g}, but {wanted} "
        f"is {span.reshape(-1)[at] / steps:.6g}"
    )


def within_half_a_step(run: CaseRun) -> str | None:
    """No value inside the range may be further off than half a step."""
    error = (run.got["back"] - run.tree["x"]).abs() / run.got["scale"]
    if (error <= 0.5 + SLACK).all():  # which NaN is not
        return None
    flat = int(error.argmax())
    x, back = run.tree["x"].reshape(-1)[flat], run.got["back"].reshape(-1)[flat]
    return f"{x:.6g} came back as {back:.6g}, off by {error.max():.3g} x scale; half the scale is the most"


def symmetric_codes(run: CaseRun) -> str | None:
    """Symmetric means: zero point 0, codes from -127 to 127."""
    if not run.case.symmetric:
        return None
    if (run.got["zero_point"] != 0).any():
        return "symmetric quantization has zero_point 0"
    return "the code -128 is used, which has no positive partner" if (run.got["q"] == -128).any() else None


def codes_mean_what_they_should(run: CaseRun) -> str | None:
    """A pair that agrees on another meaning of the zero point is of no use to anyone else's code."""
    q, scale, zero_point = (run.got[name].double() for name in ("q", "scale", "zero_point"))
    off = (run.got["back"].double() - (q - zero_point) * scale).abs() > SLACK * scale
    if not off.any():
        return None
    return "a code q does not stand for (q - zero_point) * scale, although both functions agree with each other"


def not_whole(run: CaseRun) -> object:
    """Whether a zero point has a fraction; one of a floating dtype may be a whole number by accident."""
    zero_point = run.got["zero_point"]
    if not zero_point.is_floating_point():
        return False
    return True if (zero_point.frac() != 0).any() else CANNOT_TELL


AXES_NOT_KEPT = (
    "Reduce over every axis except channel_dim, with keepdim=True, so that scale and zero_point broadcast against x. "
    "Per tensor, both have no axes at all."
)


INT8_QUANTIZE = Oracle(
    id="02-int8-quantize",
    judge=(
        right_kinds,
        tight_scale,
        zero_stays_zero,
        within_half_a_step,
        symmetric_codes,
        codes_mean_what_they_should,
        inputs_untouched,
    ),
    diagnose=(
        Hint(lambda run: "made" in run.got, "End with `return q, scale, zero_point`."),
        Hint(
            lambda run: not run.got["scale"].isfinite().all() or (run.got["scale"] <= 0).any(),
            "A channel of zeros (or of one value) has no width, and division by a scale of 0 gives NaN. Any positive "
            "scale will do for it.",
        ),
        Hint(
            not_whole,
            "The zero point is the code of 0.0, so it must be a whole number. Round it, or zero falls between two "
            "codes.",
        ),
        Hint(
            lambda run: not_whole(run) is not True and run.got["zero_point"].dtype != DTYPES["zero_point"],
            "PyTorch's own functions take an int32 as a zero point, so end with `.to(torch.int32)`.",
        ),
        Hint(
            attempt(lambda a: a.per_channel and a.scale.numel() == 1),
            "There is one scale for the whole tensor, but one per channel was asked for. Reduce over every axis "
            "except channel_dim, and keep the axes.",
        ),
        Hint(
            attempt(lambda a: a.per_channel and a.step_is(a.scale_of_all, 1)),
            "Every channel got the scale of the whole tensor. Reduce over every axis except channel_dim, and keep the "
            "axes.",
        ),
        Hint(
            attempt(lambda a: a.scale.shape != a.low.shape),
            AXES_NOT_KEPT,
        ),
        Hint(
            attempt(lambda a: a.symmetric and a.step_is(torch.maximum(-a.low, a.high), 128)),
            "With max|x| / 128 the largest positive value would need the code 128, which int8 does not have. Use 127 "
            "on both sides.",
        ),
        Hint(
            attempt(lambda a: a.symmetric and a.step_is(2 * torch.maximum(-a.low, a.high), 255)),
            "2 max|x| / 255 counts the gaps from -128 to 127. Symmetric codes go from -127 to 127, which leaves 127 "
            "gaps on each side of 0: the scale is max|x| / 127.",
        ),
        Hint(
            attempt(lambda a: a.symmetric and a.step_is(a.high, 127) and (-a.low > a.high).any()),
            "The step comes from the largest value, but a negative one lies further from zero. Take max |x|.",
        ),
        Hint(
            attempt(lambda a: a.symmetric and any(a.step_is(a.high - a.low, n_gaps) for n_gaps in (254, 255))),
            "Symmetric quantization has 0 in the middle, so its step comes from the largest absolute value, on "
            "whichever side it lies.",
        ),
        Hint(
            attempt(Attempt.range_without_zero),
            "All values lie on one side of zero. Extend the range so that it includes 0, or the zero point does not "
            "fit into the codes.",
        ),
        Hint(
            attempt(lambda a: not a.symmetric and a.step_is(a.high - a.low, 256)),
            "256 codes have 255 gaps between them: the step is (max - min) / 255.",
        ),
        Hint(
            attempt(lambda a: not a.symmetric and a.step_is(torch.maximum(-a.low, a.high), 127)),
            "Affine quantization stretches all 256 codes from the smallest to the largest value, zero included: the "
            "step is (max - min) / 255.",
        ),
        Hint(
            attempt(Attempt.zero_point_mirrored),
            "The zero point has the wrong sign in it. The smallest value gets the code -128, so 0 lies -low / scale "
            "codes above that, and low is negative.",
        ),
        Hint(
            attempt(lambda a: (a.error > 200).any() and ((a.error - 256).abs() < 1)[a.error > 200].all()),
            "Some values are off by 256 steps, so an int8 wrapped around. Clamp before the cast to int8, and subtract "
            "the zero point in a wider type.",
        ),
        Hint(
            attempt(lambda a: a.goes_back_by(lambda q, scale, zero_point: q * scale)),
            "dequantize_int8 leaves the zero point out. A code says how many steps it lies above zero_point.",
        ),
        Hint(
            attempt(
                lambda a: (
                    a.goes_back_by(lambda q, scale, zero_point: q * scale + zero_point)
                    or a.goes_back_by(lambda q, scale, zero_point: q * scale - zero_point)
                )
            ),
            "The zero point is a code, not a value. Subtract it from the code first, and multiply by the scale "
            "afterwards.",
        ),
        Hint(
            attempt(lambda a: a.goes_back_by(lambda q, scale, zero_point: (q + zero_point) * scale)),
            "The zero point has the wrong sign in one of the two functions. Quantizing adds it to x / scale, and "
            "going back subtracts it from the code.",
        ),
        Hint(
            attempt(lambda a: a.goes_back_by(lambda q, scale, zero_point: q - zero_point * scale)),
            "Only the zero point is multiplied by the scale. `*` comes before `-`, so the difference needs "
            "parentheses.",
        ),
        Hint(
            attempt(Attempt.zero_point_not_added),
            "quantize_int8 has a zero point but does not add it to the codes: q is x / scale + zero_point, rounded.",
        ),
        Hint(
            attempt(Attempt.counted_from_the_smallest),
            "The codes are counted from the smallest value, and the zero point is rounded separately, so two "
            "roundings add up. Add the rounded zero point to x / scale, and round the sum.",
        ),
        Hint(
            attempt(Attempt.zero_point_from_zero),
            "This zero point belongs to codes from 0 to 255. The codes of int8 begin at -128, and so does the range.",
        ),
        Hint(
            attempt(Attempt.scale_has_a_floor),
            "The scale is kept above a fixed number, which is too large for small weights. Only a scale of exactly 0 "
            "needs to be replaced.",
        ),
        Hint(
            attempt(Attempt.zero_point_cut),
            "The zero point is up to a whole code off, because its fraction was cut off or rounded down; a cast to "
            "int32 cuts it off, too. Round it to the nearest whole number, as you do with the codes.",
        ),
        Hint(
            attempt(lambda a: 0.5 + SLACK < a.error.max() < 1.01 and a.codes_cut()),
            "Errors of up to a whole step: a cast to int8 cuts the fraction off. Round to the nearest code first.",
        ),
    ),
    errors={"The size of tensor": AXES_NOT_KEPT},
    call=lambda run: as_call(
        "quantize_int8",
        run.tree["x"],
        symmetric=run.case.symmetric,
        channel_dim=run.case.channel_dim,
    ),
)


def _span(run: CaseRun) -> torch.Tensor:
    low, high = ends_of(run.tree["x"], run.case.channel_dim)
    return torch.maximum(-low, high) if run.case.symmetric else high - low


def _steps(run: CaseRun) -> int:
    return 127 if run.case.symmetric else 255


def _named(name: str) -> str:
    return "the result of dequantize_int8" if name == "back" else name


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _first_bad_scale(scale: torch.Tensor) -> str:
    return f"{scale[~(scale.isfinite() & (scale > 0))][0]:.6g}"
