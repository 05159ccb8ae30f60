"""What the labs have students write, ready for a script: recomputation, a loss in chunks, optimizers with small states.

Each does what its lab asks for, on weights of any floating dtype; weights of 16 bits are rounded stochastically.
Nothing here knows of sizes or machines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from labkit.capstone.allowed import Names
from labkit.capstone.optimizers import Adafactor, AdamW, AdamW8bit, Muon


def checkpoint(function: Callable[..., Tensor], *args: Tensor) -> Tensor:
    """function(*args) that keeps its arguments alone: the rest is computed again in the backward pass (lab 05)."""
    return torch_checkpoint(function, *args, use_reentrant=False, preserve_rng_state=False)


class _ChunkedLoss(torch.autograd.Function):
    """The gradients are made with the loss, one chunk of tokens after the other."""

    @staticmethod
    def forward(ctx, x: Tensor, head: Tensor, y: Tensor, n_chunks: int) -> Tensor:
        dx, d_head = torch.empty_like(x), torch.zeros_like(head)
        total = torch.zeros((), dtype=torch.float32)
        for part, d_part, labels in zip(x.chunk(n_chunks), dx.chunk(n_chunks), y.chunk(n_chunks), strict=True):
            log_p = (part @ head.T).float().log_softmax(-1)
            total += F.nll_loss(log_p, labels, reduction="sum")
            d_logits = log_p.exp_()
            d_logits.scatter_add_(1, labels[:, None], torch.full((len(labels), 1), -1.0))
            d_logits = d_logits.div_(len(y)).to(x.dtype)
            d_part.copy_(d_logits @ head)
            d_head.addmm_(d_logits.T, part)
        ctx.save_for_backward(dx, d_head)
        return total / len(y)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        dx, d_head = ctx.saved_tensors
        return dx * grad.to(dx.dtype), d_head * grad.to(d_head.dtype), None, None


def chunked_loss(x: Tensor, head: Tensor, y: Tensor, n_chunks: int = 8) -> Tensor:
    """The mean cross-entropy of x @ head.T, of which one chunk's logits exist at a time (lab 05)."""
    return _ChunkedLoss.apply(x.flatten(0, -2), head, y.flatten(), n_chunks)


def loss(logits: Tensor, y: Tensor) -> Tensor:
    """The mean cross-entropy, in float32."""
    return F.cross_entropy(logits.flatten(0, -2).float(), y.flatten())


def autocast(dtype: torch.dtype) -> contextlib.AbstractContextManager:
    """Products in `dtype`, whatever the weights are in (lab 03)."""
    return torch.autocast("cpu", dtype=dtype)


def step_in_backward(parameters: Iterable[nn.Parameter], update: Callable[[nn.Parameter], None]) -> None:
    """Call update(parameter) as soon as its gradient is there, and free the gradient (lab 06)."""

    def ready(parameter: nn.Parameter) -> None:
        update(parameter)
        parameter.grad = None

    for parameter in parameters:
        parameter.register_post_accumulate_grad_hook(ready)


KIT = Names(
    "kit",
    checkpoint=checkpoint,
    chunked_loss=chunked_loss,
    loss=loss,
    autocast=autocast,
    step_in_backward=step_in_backward,
    AdamW=AdamW,
    AdamW8bit=AdamW8bit,
    Adafactor=Adafactor,
    Muon=Muon,
)
"""What a script finds under `kit`."""
