"""Lab 04: a convolutional block on images in channels-last, without hidden copies of the layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from labkit.meters.dispatch import Meter
from labkit.spec import Answer, Case, Exercise, Tree

LAST = torch.channels_last
COPIES = ("clone", "copy_", "_to_copy", "contiguous")
"""Operations that write a tensor again in another layout."""


@dataclass(frozen=True)
class Images(Case):
    """n images of height x width pixels with so many channels; both layouts are the same for 1 channel or 1 pixel."""

    n: int
    channels: int
    height: int
    width: int

    @property
    def ambiguous(self) -> bool:
        return self.channels == 1 or self.height * self.width == 1


class Block(nn.Module):
    """Two convolutions, a gate for each channel, a layer norm over the channels; the notebook says how they follow."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.gate = nn.Linear(channels, channels)
        self.norm = nn.LayerNorm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)


class Copies(Meter):
    """The names of the copies that a block of code dispatches, without those inside of kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func).split(".")[1]
        if name in COPIES:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def images(case: Images, gen: torch.Generator) -> Tree:
    """x: (n, channels, height, width). weights: of the block's parameters, in their order. push: the gradient of y."""
    shapes = [parameter.shape for parameter in Block(case.channels).parameters()]
    x = torch.randn(case.n, case.channels, case.height, case.width, generator=gen)
    weights = [torch.randn(shape, generator=gen) * 0.3 for shape in shapes]
    return {"x": x, "weights": weights, "push": torch.randn(x.shape, generator=gen)}


def block_of(case: Images, weights: list[Tensor]) -> Block:
    block = Block(case.channels)
    with torch.no_grad():
        for parameter, value in zip(block.parameters(), weights, strict=True):
            parameter.copy_(value)
    return block


def gradients(block: nn.Module, x: Tensor, y: Tensor, tokens: Tensor, push: Tensor) -> dict[str, Tensor | None]:
    """Of x and of each parameter, pushed back through y and, by their sum, through the tokens."""
    to = {"x": x, **{name: one for name, one in block.named_parameters() if one.requires_grad}}
    # Sums, for a result of another shape, too.
    loss = (y * push).sum() + tokens.square().sum() if y.shape == push.shape else y.sum()
    if not loss.requires_grad:
        return dict.fromkeys(to)
    return dict(zip(to, torch.autograd.grad(loss, [*to.values()], allow_unused=True), strict=True))


def drive_block(ans, case: Images, tree: Tree, stage) -> dict[str, Any]:
    """weights_last, y_last: whether these are in channels-last. a_view: whether the tokens are y's own memory.

    grads: of x and of the block's parameters.
    """
    block = ans.prepare(block_of(case, tree["weights"]).to(stage.device))
    x = tree["x"].to(stage.device).contiguous(memory_format=LAST).requires_grad_()
    with Copies() as copies:
        y, tokens = ans.run_block(block, x)
    kernels = [parameter for parameter in block.parameters() if parameter.dim() == 4]
    return {
        "y": y.detach(),
        "tokens": tokens.detach(),
        "weights_last": all(kernel.is_contiguous(memory_format=LAST) for kernel in kernels),
        "copies": len(copies.names),
        "y_last": y.is_contiguous(memory_format=LAST),
        "a_view": tokens.untyped_storage().data_ptr() == y.untyped_storage().data_ptr(),
        "grads": gradients(block, x, y, tokens, tree["push"].to(stage.device)),
    }


MEMORY_FORMAT = Exercise(
    id="04-memory-format",
    title="Channels last, and no copies",
    points=0.7,
    optional=True,
    minutes=20,
    difficulty=2,
    answers=(Answer("prepare"), Answer("run_block")),
    public=(Images(2, 8, 6, 5), Images(1, 5, 4, 7), Images(2, 1, 6, 5), Images(3, 8, 1, 1)),
    inputs=images,
    drive=drive_block,
)
