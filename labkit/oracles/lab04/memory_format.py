"""Lab 04: what a block computes on images, whatever their layout, and what the usual mistakes cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from labkit.compare import inputs_untouched
from labkit.exercises.lab04.memory_format import Images
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Tolerance

PARTS = ("conv1", "gate", "norm", "conv2")
"""The block's parts: run_block asks for them first, also where prepare has returned nothing."""


def computed(run: CaseRun[Images]) -> tuple[torch.Tensor, torch.Tensor]:
    """y and the tokens, with plain layouts."""
    w1, b1, gate, gate_bias, norm, norm_bias, w2, b2 = run.tree["weights"]
    x, case = run.tree["x"], run.case
    h = F.relu(F.conv2d(x, w1, b1, padding=1))
    h = h * torch.sigmoid(F.linear(h.mean((2, 3)), gate, gate_bias))[:, :, None, None]
    h = F.layer_norm(h.movedim(1, 3), (case.channels,), norm, norm_bias).movedim(3, 1)
    y = F.conv2d(h.contiguous(), w2, b2, padding=1) + x
    return y, y.flatten(2).transpose(1, 2)


def expected(run: CaseRun[Images]) -> dict[str, Any]:
    y, tokens = computed(run)
    kept = {"weights_last": True, "copies": 0, "y_last": True, "a_view": True}
    return {"y": y.contiguous(), "tokens": tokens.contiguous(), **kept}


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
    tolerance=Tolerance(atol=1e-4, rtol=1e-3),
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
    },
    errors={f"'NoneType' object has no attribute '{part}'": "prepare has to return the block." for part in PARTS},
    diagnose=(
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
    ),
)
