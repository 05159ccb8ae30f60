"""Lab 04: what a block computes on images, whatever their layout, and what the usual mistakes cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional as F

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab04.memory_format import Block, Images, block_of, gradients
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Tolerance

CLOSE = Tolerance(atol=1e-4, rtol=1e-3)
ANY_ORDER = Tolerance(atol=5e-3, rtol=1e-3)
"""Of a gradient, which is a sum over all pixels."""
NAMES = ("x", *(name for name, _ in Block(1).named_parameters()))
PARTS = ("conv1", "gate", "norm", "conv2")
"""The block's parts: run_block asks for them first, also where prepare has returned nothing."""


TWO_TENSORS = "Return two tensors, y and then the tokens."


def computed(run: CaseRun[Images], slip: str = "") -> tuple[torch.Tensor, torch.Tensor]:
    """y and the tokens, with plain layouts. slip: what is left out, or done otherwise."""
    w1, b1, gate, gate_bias, norm, norm_bias, w2, b2 = run.tree["weights"]
    x, case = run.tree["x"], run.case
    h = F.conv2d(x, w1, b1, padding=1)
    h = h if slip == "no relu" else F.relu(h)
    pooled = {"sum": h.sum((2, 3)), "largest": h.amax((2, 3)), "of x": x.mean((2, 3))}.get(slip, h.mean((2, 3)))
    share = F.linear(pooled, gate, gate_bias)[:, :, None, None]
    share = {"no sigmoid": share, "no gate": torch.ones(())}.get(slip, torch.sigmoid(share))
    h = h if slip == "gate after the norm" else h * share
    h = F.layer_norm(h.movedim(1, 3), (case.channels,), norm, norm_bias).movedim(3, 1)
    h = h * share if slip == "gate after the norm" else h
    y = F.conv2d(h.contiguous(), w2, b2, padding=1) + (0 if slip == "no x" else x)
    return y, y.flatten(2).transpose(1, 2)


def slipped(*slips: str) -> Callable[[CaseRun[Images]], object]:
    """A diagnosis: one of these makes y; CANNOT_TELL where it changes nothing."""

    def diagnose(run: CaseRun[Images]) -> object:
        made = [computed(run, slip)[0] for slip in slips]
        wrong = [y for y in made if compare(run.expected["y"], y.contiguous(), CLOSE)]
        return any(compare(y.contiguous(), run.got["y"], CLOSE) is None for y in wrong) if wrong else CANNOT_TELL

    return diagnose


def expected(run: CaseRun[Images]) -> dict[str, Any]:
    y, tokens = computed(run)
    kept = {"weights_last": True, "copies": 0, "y_last": True, "a_view": True}
    return {"y": y.contiguous(), "tokens": tokens.contiguous(), **kept, "grads": true_gradients(run)}


def true_gradients(run: CaseRun[Images]) -> dict[str, torch.Tensor]:
    block, x = block_of(run.case, run.tree["weights"]), run.tree["x"].clone().requires_grad_()
    tracked = replace(run, tree={"x": x, "weights": list(block.parameters())})
    return gradients(block, x, *computed(tracked), run.tree["push"])


def layout(when: Callable[[dict], object]) -> Callable[[CaseRun[Images]], object]:
    """A diagnosis of the layout, which one channel or one pixel does not show."""
    return lambda run: CANNOT_TELL if run.case.ambiguous else when(run.got)


def called(run: Observation) -> str:
    case = run.case
    shape = (case.n, case.channels, case.height, case.width)
    return f"run_block(prepare(block), <float32 of shape {shape}, in channels-last>)"


MEMORY_FORMAT = Oracle(
    id="04-memory-format",
    expect=expected,
    tolerance=lambda run: {"y": CLOSE, "tokens": CLOSE, "grads": ANY_ORDER},
    judge=(inputs_untouched,),
    call=called,
    axis="numbers of images, channels and pixels",
    places={
        "y": "y",
        "tokens": "tokens",
        "weights_last": "layout of the convolutions' weights (are they in channels-last?)",
        "copies": "number of copies in run_block",
        "y_last": "layout of y (is it in channels-last?)",
        "a_view": "memory of the tokens (is it that of y?)",
        **{f"grads.{name}": f"gradient of {name}" for name in NAMES},
    },
    errors={
        **{f"'NoneType' object has no attribute '{part}'": "prepare has to return the block." for part in PARTS},
        "Given normalized_shape": "The layer norm is one over the channels, which have to come last: permute "
        "h before it, and permute the result back.",
    },
    unusable={"values to unpack": TWO_TENSORS},
    diagnose=(
        Hint(
            lambda run: run.got["y"].dim() == run.got["tokens"].dim() == 3,  # the two images of a batch
            TWO_TENSORS,
        ),
        Hint(
            lambda run: run.got["y"].dim() == 3 and run.got["tokens"].dim() == 4,
            "The two results have changed places: return y, then the tokens.",
        ),
        Hint(slipped("no relu"), "The ReLU after the first convolution is missing."),
        Hint(slipped("no gate"), "h is not multiplied by the gate."),
        Hint(slipped("no sigmoid"), "The gate goes through a sigmoid before it multiplies h."),
        Hint(slipped("of x"), "The gate is computed from h, after the first convolution and its ReLU, and not from x."),
        Hint(slipped("sum", "largest"), "The gate is computed from the mean over the pixels of each channel."),
        Hint(slipped("gate after the norm"), "h is multiplied by the gate before the norm, not after it."),
        Hint(slipped("no x"), "x is missing at the end: y is the second convolution's result plus x."),
        Hint(
            lambda run: run.got["tokens"].shape == run.expected["y"].flatten(2).shape != run.expected["tokens"].shape,
            "The tokens are (images, channels, pixels): exchange the last two dimensions.",
        ),
        Hint(
            layout(lambda got: not got["weights_last"]),
            "The weights of the convolutions are in the ordinary layout, so every call has to convert them. Convert "
            "the whole block once, in prepare: block.to(memory_format=torch.channels_last).",
        ),
        Hint(
            layout(lambda got: got["copies"] and not got["y_last"]),
            "y is in the ordinary layout again: on the way, contiguous() without a memory format, or a reshape, wrote "
            "the images anew.",
        ),
        Hint(
            layout(lambda got: not got["y_last"]),
            "y is not in channels-last: it was put together in the ordinary layout.",
        ),
        Hint(
            layout(lambda got: got["copies"]),
            "Something is copied: contiguous() writes a tensor anew where its layout is another, and so do reshape and "
            "flatten where no view is possible. permute never copies, and the layer norm takes permuted images.",
        ),
        Hint(
            layout(lambda got: not got["a_view"]),
            "The tokens are a copy of y. In channels-last, the channels of a pixel lie side by side, so tokens are a "
            "view: y.flatten(2).transpose(1, 2).",
        ),
        Hint(
            lambda run: any(run.got["grads"][name] is None for name in NAMES[1:]),
            "No gradient reaches the block's parameters, which are to be trained: a torch.no_grad(), .detach() or "
            ".data cuts them off from y.",
        ),
        Hint(
            lambda run: compare(run.expected["grads"]["x"], run.got["grads"]["x"], ANY_ORDER),
            "y is right, and the gradient of x is not: a .detach() or .data cuts x off, and what comes before the "
            "block does not learn.",
        ),
    ),
)
