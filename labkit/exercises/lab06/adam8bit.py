"""Lab 06: blocks of numbers in one byte each, there and back, and Adam whose moments are such blocks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.exercises.lab06.maps import Quantized, dynamic_map, linear_map
from labkit.exercises.lab06.playing import Stepping, play, shapes_of
from labkit.spec import Answer, Case, Exercise, Run, Tree

BLOCK = 256
SMALLEST_QUANTIZED = 4096
"""Elements from which on a tensor's moments are quantized."""


@dataclass(frozen=True)
class Blocks(Case):
    """A tensor to quantize in blocks. map: "linear" or "dynamic".

    kind: "normal", "scales" (each block a hundredth of the one before), "zeros" (one block is all zero), or
    "subnormal" (one block holds the smallest numbers of float32).
    """

    shape: tuple[int, ...]
    map: str = "dynamic"
    signed: bool = True
    block_size: int = BLOCK
    kind: str = "normal"

    def code_map(self) -> Tensor:
        return (linear_map if self.map == "linear" else dynamic_map)(self.signed)


@dataclass(frozen=True)
class EightBitSteps(Stepping):
    """Steps of Adam whose gradients are of sizes from 0.01 to 1 within every block; RARE and its like are small.

    The first row of each matrix has gradients of 0, as that of a token which is in no text.
    With beta1 = 0, a step depends on nothing that was stored but the second moment.
    """

    lr: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def settings(self) -> dict[str, object]:
        return {"lr": self.lr, "betas": (self.beta1, self.beta2), "eps": self.eps}


def adam8bit_inputs(case: Blocks | EightBitSteps, gen: torch.Generator) -> dict[str, Tree]:
    """x; or weights, and grads whose sizes and usual signs are drawn once for each weight."""
    if isinstance(case, EightBitSteps):
        shapes = shapes_of(case)
        weights = {name: torch.randn(shape, generator=gen) for name, shape in shapes.items()}
        sizes = {name: 10 ** (-2 * torch.rand(shape, generator=gen)) for name, shape in shapes.items()}
        sizes = {name: size * (2 * torch.randint(2, size.shape, generator=gen) - 1) for name, size in sizes.items()}
        for size in sizes.values():
            if size.dim() > 1:
                size[0] = 0
        noisy = lambda name: 1 + 0.5 * torch.randn(shapes[name], generator=gen)  # noqa: E731
        grads = [{name: size * noisy(name) for name, size in sizes.items()} for _ in range(case.n_steps)]
        return {"weights": weights, "grads": [case.handed_out(step, drawn) for step, drawn in enumerate(grads)]}
    flat = torch.randn(case.shape, generator=gen).flatten()
    flat = flat if case.signed else flat.square()
    blocks = flat.split(case.block_size)
    if case.kind == "scales":
        blocks = [block * 10.0 ** (-2 * n) for n, block in enumerate(blocks)]
    if case.kind in ("zeros", "subnormal"):
        factor = 0.0 if case.kind == "zeros" else 2.0**-140
        blocks = [block * factor if n == 1 else block for n, block in enumerate(blocks)]
    return {"x": torch.cat(list(blocks)).reshape(case.shape)}


def drive_adam8bit(ans, case: Blocks | EightBitSteps, tree: dict, stage) -> dict[str, Tree]:
    """The weights after each step; or codes, scales and what is dequantized from them."""
    if isinstance(case, EightBitSteps):
        return play(lambda params: ans.Adam8bit(params, **case.settings()), case, tree, stage)
    code_map = case.code_map().to(stage.device)
    with stage.meter("memory"), stage.meter("saved"):
        quantized = ans.quantize(tree["x"].to(stage.device), code_map, case.block_size)
        codes, scales = quantized.codes, quantized.scales
        back = ans.dequantize(Quantized(codes, scales), code_map, case.shape, case.block_size)
    return {"codes": codes, "scales": scales, "back": back}


ADAM8BIT = Exercise(
    id="06-adam8bit",
    title="Adam with moments of one byte",
    points=5,
    minutes=35,
    difficulty=3,
    answers=(Answer("quantize"), Answer("dequantize"), Answer("Adam8bit")),
    public=(
        Blocks((4, 512), "linear"),
        Blocks((8, 256)),
        Blocks((4, 256), signed=False, kind="scales"),
        Blocks((3, 100), block_size=64),
        Blocks((4, 256), kind="zeros"),
        Blocks((4, 256), signed=False, kind="subnormal"),
        EightBitSteps(n_steps=8, n_tokens=100, width=64),
        EightBitSteps(n_steps=8, n_tokens=64, width=64, resumed_after=4),
        EightBitSteps(n_steps=8, n_tokens=64, width=64, beta1=0.0, rare=True),
    ),
    inputs=adam8bit_inputs,
    drive=drive_adam8bit,
    run=Run(wall_s=20.0),
    meters=("memory", "saved"),
)
