"""Lab 17: how a layer that is cut over the ranks is run, forward and back, and what comes back of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.spec import Case

LARGE = 2**17
"""From so many elements of a gradient on, only some of them come back."""
SOME = 997
BUILT, FORWARD, BACKWARD = "after construction", "after the forward pass", "after the backward pass"


def one_seed(case: Case, gen: torch.Generator) -> dict[str, Any]:
    """Of weights and inputs, which are the same on all ranks: each rank draws them."""
    return {"seed": int(torch.randint(2**40, (), generator=gen))}


def some(tensor: Tensor | None) -> Tensor | None:
    """What comes back of a gradient; its shape goes with it (`shape_of`)."""
    if tensor is None:
        return None
    if tensor.numel() < LARGE:
        return tensor.detach().clone()
    return tensor.detach().flatten()[torch.arange(0, tensor.numel(), SOME)]


def shape_of(tensor: Tensor | None) -> list[int] | None:
    return None if tensor is None else list(tensor.shape)


def warm_up() -> None:
    """Take a backward pass of an element: PyTorch loads tens of MB at its first one, which are no rank's own."""
    element = torch.ones(1, 2, requires_grad=True)
    F.gelu(F.layer_norm(element, (2,))).backward(torch.ones(1, 2))


def run_layer(
    build: Callable[[], nn.Module],
    names: Sequence[str],
    micro_batches: Sequence[tuple[Tensor, Tensor]],
    stage: Any,
    trains_input: bool = True,
) -> dict[str, Any]:
    """y and the gradient of x of each micro-batch; then each parameter's shape, and its gradient.

    micro_batches: (x, gradient of y). The ranks halt when the layer is built, and after each pass.
    """
    found: dict[str, Any] = {"y": [], "x": []}
    warm_up()
    with stage.meter("memory"):
        layer = build()
        stage.mark(BUILT)
        for x, grad in micro_batches:
            x = x.to(stage.device).requires_grad_(trains_input)
            y = layer(x)
            stage.mark(FORWARD)
            y.backward(grad.to(stage.device))
            stage.mark(BACKWARD)
            found["y"].append(y.detach())
            found["x"].append(x.grad)
        parameters = {name: getattr(layer, name) for name in names}
        found["shapes"] = {name: shape_of(one) for name, one in parameters.items()}
        found["grads"] = {name: some(one.grad) for name, one in parameters.items()}
    return found
