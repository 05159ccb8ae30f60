"""Lab 08: a linear layer over a frozen 4-bit weight, as an autograd Function. What is asked, given and run.

The weight is packed and unpacked by the driver, with a code of its own. What is true of the result is not here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from labkit.meters.memory.live import LiveStorages
from labkit.spec import Answer, Case, Exercise

BLOCK = 64
CHUNK_BYTES = 2**15
"""Packed bytes that are unpacked at a time, so that the float weight is all that unpacking takes."""

Dequantize = Callable[[torch.Tensor, torch.Tensor, torch.dtype], torch.Tensor]


@dataclass(frozen=True)
class Frozen(Case):
    """n_layers in a row, each over a weight and a code of its own; with more than one, n_in is n_out.

    strided: input and gradient have two leading axes, whose order in memory is the other one.
    """

    n_in: int = 128
    n_out: int = 64
    n_rows: tuple[int, ...] = (2, 3)
    n_layers: int = 1
    dtype: str = "float32"
    strided: bool = False


def frozen_inputs(case: Frozen, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """Of each layer, packed: uint8 (n_out, n_in / 2), two codes in each; scales: float32 (n_out, n_in / 64); code: its
    16 values.

    x, grad: the input of the first layer and the gradient of the last one's output, in the case's dtype.
    """
    dtype, n = getattr(torch, case.dtype), case.n_layers
    code = torch.randn(n, 16, generator=gen).sort().values
    # With another mean a chain of layers multiplies the mean of its input, and outputs are no longer of size 1.
    code -= code.mean(1, keepdim=True)
    return {
        "packed": torch.randint(256, (n, case.n_out, case.n_in // 2), generator=gen, dtype=torch.uint8),
        "scales": (0.5 + torch.rand(n, case.n_out, case.n_in // BLOCK, generator=gen)) / case.n_in**0.5,
        "code": code / code.square().mean(1, keepdim=True).sqrt(),
        "x": torch.randn(*case.n_rows, case.n_in, generator=gen).to(dtype),
        "grad": torch.randn(*case.n_rows, case.n_out, generator=gen).to(dtype),
    }


def dequantizer(code: torch.Tensor) -> Dequantize:
    """(packed, scales, dtype) -> the weight (n_out, n_in). It takes little more memory than the weight itself."""
    pairs = torch.stack([code.repeat_interleave(16), code.repeat(16)], 1)

    def dequantize(packed: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        n_out, n_bytes = packed.shape
        weight = torch.empty(n_out, 2 * n_bytes, dtype=dtype, device=packed.device)
        n_rows = max(1, CHUNK_BYTES // n_bytes)
        for start in range(0, n_out, n_rows):
            part = slice(start, start + n_rows)
            values = pairs.index_select(0, packed[part].flatten().int()).view(-1, scales.shape[1], BLOCK)
            weight[part] = values.mul_(scales[part, :, None]).view(-1, 2 * n_bytes)
        return weight

    return dequantize


def drive_frozen(ans, case: Frozen, tree: dict, stage) -> dict[str, object]:
    """y of the last layer, the gradient of the first one's input, and what the forward pass left alive.

    unpacked_in: the dtypes that weights were unpacked in. n_unpacked: how often one was unpacked in the backward pass.
    """
    packed, scales, codes = (tree[name].to(stage.device) for name in ("packed", "scales", "code"))
    asked_for: list[torch.dtype] = []

    def noting(dequantize: Dequantize) -> Dequantize:
        def noted(packed: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
            asked_for.append(dtype)
            return dequantize(packed, scales, dtype)

        return noted

    layers = [(packed[i], scales[i], noting(dequantizer(codes[i]))) for i in range(case.n_layers)]
    x, grad = tree["x"].to(stage.device).requires_grad_(), tree["grad"].to(stage.device)
    grad = _strided(grad) if case.strided else grad
    with LiveStorages():  # the first look at each kind of argument takes memory itself, more with every library loaded
        ans.FrozenNF4Linear.apply(x, *layers[0]).sum().backward()
    x.grad = None
    asked_for.clear()
    with stage.meter("memory"):
        with stage.meter("saved"):
            # Made here, so that it is gone after the first layer unless that one keeps it.
            y = _strided(2 * x) if case.strided else 2 * x
            for layer in layers:
                y = ans.FrozenNF4Linear.apply(y, *layer)
        n_forward = len(asked_for)
        # Not y.backward(grad): given a tensor, PyTorch imports its symbolic shapes, which takes seconds.
        (y * grad).sum().backward()
    return {
        "y": y,
        "grad": x.grad,
        "unpacked_in": ", ".join(sorted({str(dtype).removeprefix("torch.") for dtype in asked_for})),
        "n_unpacked": len(asked_for) - n_forward,
        "saved_bytes": stage.measured["saved_bytes"],
    }


def _strided(t: torch.Tensor) -> torch.Tensor:
    """The same values, with the first two axes the other way round in memory."""
    return t.transpose(0, 1).contiguous().transpose(0, 1)


FROZEN_NF4 = Exercise(
    id="08-frozen-nf4",
    title="A frozen 4-bit weight in a forward and a backward pass",
    points=3,
    minutes=15,
    difficulty=2,
    answers=(Answer("FrozenNF4Linear"),),
    public=(
        Frozen(),
        Frozen(64, 64, (5,)),
        Frozen(64, 192, (2, 3), dtype="bfloat16", strided=True),
        Frozen(64, 64, (4, 256)),
        Frozen(512, 512, (4,), n_layers=4),
    ),
    inputs=frozen_inputs,
    drive=drive_frozen,
    meters=("memory", "saved"),
)
