"""Lab 06: what is true of blocks of one-byte numbers and of Adam with such moments."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab06.adam8bit import SMALLEST_QUANTIZED, Blocks, EightBitSteps
from labkit.oracles.calls import fields_in_words
from labkit.oracles.hints import once
from labkit.oracles.lab06.adam8bit_blocks import IN_BLOCKS, Fault, find_in_blocks
from labkit.oracles.lab06.eight_bits import MAPS, deviation, history, small_off
from labkit.oracles.lab06.histories import OTHER_STATE_BYTES, STEP_ERRORS, in_words, nothing_moved
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, KiB, MiB, Observation, Oracle

MOST_OFF = 1.5
"""How far from exact moments the weights may end, as a multiple of what one byte with both dynamic maps makes of it.

A signed map has half as many values above 0, so its gaps there are twice as wide: where the second moment alone counts,
it makes the deviation 1.95 to 2.01 times as large. Other maps made for the second moment, such as 255 values in a
geometric series, stay below 1.35 in every case, that of `bitsandbytes` at 1.00.
"""
FLOAT32_OFF = 1e-5
"""What the order of float32 operations may add: in a first step, nothing that was rounded counts."""
SMALL_ATOL = 2e-5
TOO_MANY_BYTES = (
    "Too many bytes stay alive after a step. Of a tensor with 4096 elements or more keep only codes and scales: two "
    "bytes per weight, and a float32 scale for each block of 256 and each moment."
)
TOO_MANY_AT_ONCE = (
    "What stays alive fits, but there are too many temporary numbers. Comparing every number with all 256 values of "
    "the map makes 256 of each: torch.bucketize finds the nearest one without. In step, dequantize one parameter at a "
    "time."
)
NOT_ADAM = (
    "The step itself is not Adam's: small tensors, which are not quantized, are off too. Apart from how the moments "
    "are stored, it is your AdamW without the decay."
)


@once
def find(run: CaseRun) -> Fault | None:
    return find_in_blocks(run) if isinstance(run.case, Blocks) else find_in_steps(run)


def find_in_steps(run: CaseRun[EightBitSteps]) -> Fault | None:
    exact, lr = history(run, "exact"), run.case.lr
    if nothing_moved(run):
        return Fault("nothing moved", "no weight has moved")
    if without_gradient_and_nan(run):
        return Fault("no eps", "weights whose gradient is always 0 are NaN, all others are numbers")
    off, by_right_maps = deviation(run.got, exact, lr), deviation(history(run), exact, lr)
    most = MOST_OFF * by_right_maps + FLOAT32_OFF
    small, lost = small_off(run.got, exact), history(run, "state lost")
    if small_off(run.got, lost) <= SMALL_ATOL < small_off(exact, lost):
        return Fault("state lost", f"the steps after step {run.case.resumed_after} are those of a new optimizer")
    if small > SMALL_ATOL:
        text = f"a weight of a tensor with fewer than {SMALLEST_QUANTIZED} elements is off by {small:.2g}"
        key = "small" if off <= most else "not Adam"
        return Fault("rare", text, also=frozenset({key})) if run.case.rare else Fault(key, text)
    if off <= most:
        return None
    n_steps = run.case.n_steps
    text = (
        f"after {n_steps} step{'s' * (n_steps != 1)} the weights are off by {off:.3g} of a step on average; moments of "
        f"one byte with the dynamic maps make {by_right_maps:.2g}"
    )
    played = {mistake: history(run, mistake) for mistake in (*MAPS, "rounded first")}
    keys = frozenset(
        mistake
        for mistake, one in played.items()
        if deviation(one, exact, lr) > most and deviation(run.got, one, lr) < 0.2 * off
    )
    return Fault("off", text, also=keys)


def without_gradient_and_nan(run: CaseRun[EightBitSteps]) -> bool:
    """Whether some weights are NaN, and of those only some whose gradient is 0 in every step."""
    nan = {name: torch.stack([step[name].isnan() for step in run.got.values()]).any(0) for name in run.tree["weights"]}
    moved = {name: torch.stack([step[name] != 0 for step in run.tree["grads"] if name in step]).any(0) for name in nan}
    return any(each.any() for each in nan.values()) and not any((nan[name] & moved[name]).any() for name in nan)


def problem(run: CaseRun) -> str | None:
    found = find(run)
    return found and found.text


def found(*keys: str) -> Callable[[CaseRun], object]:
    """A diagnosis: the fault is one of these."""

    def when(run: CaseRun) -> object:
        if keys[0] in IN_BLOCKS and isinstance(run.case, EightBitSteps):
            return CANNOT_TELL  # a wrong quantize spoils the steps as well: it is told first
        fault = find(run)
        return fault is not None and not fault.keys.isdisjoint(keys)

    return when


def kept_bytes(run: CaseRun) -> float:
    """2.1 bytes for each weight of a large tensor, 8 of a small one; of a quantized tensor its codes and scales."""
    if isinstance(run.case, Blocks):
        return 12 * run.tree["x"].numel() + 64 * KiB
    sizes = [value.numel() for value in run.tree["weights"].values()]
    return sum((2.1 if n >= SMALLEST_QUANTIZED else 8) * n + OTHER_STATE_BYTES for n in sizes)


def peak_bytes(run: CaseRun) -> float:
    """Weights, gradients, the weights after each step, moments of one byte, and float32 numbers for one tensor."""
    if isinstance(run.case, Blocks):
        return 100 * run.tree["x"].numel() + MiB
    sizes = [value.nbytes for value in run.tree["weights"].values()]
    return (2 + run.case.n_steps) * sum(sizes) + kept_bytes(run) + 24 * max(sizes) + MiB


def called(run: Observation) -> str:
    if isinstance(run.case, Blocks):
        case = run.case
        signed = "signed" if case.signed else "unsigned"
        content = {"zeros": ", block 1 all zero", "scales": ", blocks of very different sizes"}.get(case.kind, "")
        return f"quantize(x, code_map, {case.block_size}), x of shape {case.shape}{content}, {signed} {case.map} map"
    return f"Adam8bit(params, {fields_in_words(run.case.settings())}), {in_words(run.case)}"


ADAM8BIT = Oracle(
    id="06-adam8bit",
    judge=(inputs_untouched, problem),
    call=called,
    axis="shapes, block sizes, maps, and optimizers that are saved and loaded",
    budgets=(Budget("saved_bytes", kept_bytes, TOO_MANY_BYTES), Budget("peak_bytes", peak_bytes, TOO_MANY_AT_ONCE)),
    errors={
        "shape of the mask": "As an index, a uint8 tensor is a mask: convert the codes with codes.int() or "
        "codes.long() first.",
        **STEP_ERRORS,
    },
    diagnose=(
        Hint(found("form"), "codes is one uint8 for each element, flat; scales is one float32 for each block."),
        Hint(
            found("one block"),
            "One scale serves the whole tensor, so a single large number takes the precision of all others. Each block "
            "has the largest magnitude in it as its scale.",
        ),
        Hint(found("no abs"), "The scale is the largest magnitude: take abs() before the maximum."),
        Hint(
            found("zeros"),
            "0/0: the scale of a block of zeros is 0. Divide only where the scale is above 0, and give all others the "
            "code of the value 0.",
        ),
        Hint(
            found("floor"),
            "The scale of a very small block was raised to a floor, or something was added to it. Second moments of "
            "1e-20 are ordinary: only a scale of exactly 0 needs special care.",
        ),
        Hint(found("scale"), "The scale of a block is its largest magnitude, also in a last block that is short."),
        Hint(found("back"), "dequantize returns code_map[codes] times the scale of each block, in the given shape."),
        *(
            Hint(
                found(side),
                f"Every number was rounded to the value {side}. bucketize with the map itself looks to one side; with "
                "the middles between neighbours it gives the nearest.",
            )
            for side in ("above", "below")
        ),
        Hint(
            found("not nearest", "below"),
            "The code is that of the nearest value in the map, whose gaps need not be even.",
        ),
        Hint(
            found("floor", "not nearest", "below", "above"),
            "Blocks of small numbers come out wrong. Nothing is added to a scale before the division, and it has no "
            "floor: only a scale of exactly 0 needs special care.",
        ),
        Hint(
            found("no eps"),
            "0/0: the moments of a weight whose gradient was always 0 are 0. Adam divides by the root of the second "
            "moment plus eps.",
        ),
        Hint(found("nothing moved"), "No weight has moved: change the parameter in place, with p.sub_(...)."),
        Hint(
            found("linear exp_avg_sq", "linear"),
            "The second moment has a linear map. It makes 0 of every value below 1/510 of its block's largest, and a "
            "weight divided by the root of 0 explodes: use the dynamic map.",
        ),
        Hint(
            found("linear exp_avg"),
            "The first moment has a linear map: what is below 1/256 of its block's largest becomes 0. "
            "Use the dynamic map.",
        ),
        Hint(
            found("signed exp_avg_sq"),
            "The second moment has a signed map, half of whose values lie below 0, where a second moment never is. Use "
            "lab06.dynamic_map(signed=False) for it.",
        ),
        Hint(
            found("unsigned exp_avg"),
            "The first moment has a map without values below 0, so all that is negative becomes 0. Use "
            "lab06.dynamic_map(signed=True) for it.",
        ),
        Hint(
            found("maps swapped"),
            "The two maps are swapped: the first moment needs values on both sides of 0, the second is never negative.",
        ),
        Hint(
            found("rounded first"),
            "The step was made with the quantized moments. Move the weight with the new moments first, and quantize "
            "them last.",
        ),
        Hint(
            found("state lost"),
            "After load_state_dict the moments began at zero again: keep them in self.state[p].",
        ),
        Hint(
            found("rare"),
            "All is well until a parameter has no gradient in a step. It makes none then: the others go on, and its "
            "moments and its own count of steps stay as they are.",
        ),
        Hint(found("not Adam"), NOT_ADAM),
        Hint(
            found("small"),
            "Tensors with fewer than 4096 elements keep float32 moments, and step as torch.optim.Adam does.",
        ),
        Hint(found("not Adam", "small"), NOT_ADAM),
    ),
)
