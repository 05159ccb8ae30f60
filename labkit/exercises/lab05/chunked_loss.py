"""Lab 05: the output head and the cross-entropy, without ever holding the logits of all tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab05.warm import warm_up_autograd
from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Head(Case):
    """n_tokens hidden vectors of `width`, a vocabulary of n_vocab, chunk_size tokens at a time.

    ignored: the fraction of the labels that are ignore_index, more of them towards the end. The last chunk_size tokens
    are all ignored with `silent_end`. upstream: the gradient of whatever comes after the loss. loud: every second
    token has logits this many times as large; from about 30 on the exponential of a logit itself is infinite.
    """

    n_tokens: int = 512
    width: int = 16
    n_vocab: int = 512
    chunk_size: int = 64
    ignored: float = 0.3
    ignore_index: int = -100
    silent_end: bool = False
    upstream: float = 1.0
    loud: float = 1.0

    @property
    def chunk_bytes(self) -> int:
        """The logits of one chunk in float32."""
        return 4 * self.chunk_size * self.n_vocab

    @property
    def x_bytes(self) -> int:
        return 4 * self.n_tokens * self.width

    @property
    def weight_bytes(self) -> int:
        return 4 * self.n_vocab * self.width


def head_inputs(case: Head, gen: torch.Generator) -> dict[str, Any]:
    """x (n_tokens, width), weight (n_vocab, width), labels (n_tokens).

    The first label is never ignored, nor is the last one without `silent_end`.
    """
    x = torch.randn(case.n_tokens, case.width, generator=gen)
    x[1::2] *= case.loud
    weight = 2 * torch.randn(case.n_vocab, case.width, generator=gen) * case.width**-0.5
    labels = torch.randint(case.n_vocab, (case.n_tokens,), generator=gen)
    if case.ignored:
        chance = 2 * case.ignored * torch.arange(case.n_tokens) / case.n_tokens
        labels[torch.rand(case.n_tokens, generator=gen) < chance] = case.ignore_index
    if case.silent_end:
        labels[-case.chunk_size :] = case.ignore_index
    else:
        labels[-1] = 1
    labels[0] = 1
    return {"x": x, "weight": weight, "labels": labels}


def run_head(loss_of: Any, case: Head, tree: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """loss, dx and dw: the gradients with respect to x and weight, of a backward pass that begins with `upstream`."""
    x, weight = (tree[name].to(device).detach().requires_grad_() for name in ("x", "weight"))
    loss = loss_of(x, weight, tree["labels"].to(device), case.chunk_size, case.ignore_index)
    if isinstance(loss, Tensor) and loss.requires_grad:
        (case.upstream * loss).backward()
    return {"loss": loss.detach() if isinstance(loss, Tensor) else loss, "dx": x.grad, "dw": weight.grad}


FEW = Head(6, 4, 5, 4, ignored=0.0)


def same_in_a_second_backward(loss_of: Any, device: torch.device) -> bool:
    """Whether a second backward pass through one graph of FEW gives the gradients of the first.

    A function that refuses a second pass does no harm, unless it is PyTorch that refuses, for what the first one wrote.
    """
    tree = head_inputs(FEW, torch.Generator().manual_seed(1))
    leaves = [tree[name].to(device).requires_grad_() for name in ("x", "weight")]
    loss = loss_of(*leaves, tree["labels"].to(device), FEW.chunk_size, FEW.ignore_index)
    if not (isinstance(loss, Tensor) and loss.requires_grad):
        return True
    above = torch.tensor(3.0, device=device)
    # Copies: what comes back may be the very memory that the second pass writes to.
    first = [found.clone() for found in torch.autograd.grad(loss, leaves, above, retain_graph=True)]
    try:
        second = torch.autograd.grad(loss, leaves, above)
    except Exception as raised:
        return "inplace operation" not in str(raised)
    return all(torch.allclose(one, other, rtol=1e-4) for one, other in zip(first, second, strict=True))


def drive_chunked_loss(ans, case: Head, tree: dict, stage) -> dict[str, Any]:
    """One pass, measured together with the student's first call on other numbers."""
    warm_up_autograd(stage.device)
    # On a GPU the inputs come from the host; they are there before the answer is called.
    tree = {name: value.to(stage.device) for name, value in tree.items()}
    with stage.meter("memory"):
        repeatable = same_in_a_second_backward(ans.chunked_loss, stage.device)
        return {**run_head(ans.chunked_loss, case, tree, stage.device), "repeatable": repeatable}


CHUNKED_LOSS = Exercise(
    id="05-chunked-loss",
    title="The largest tensor of all",
    points=4,
    minutes=30,
    difficulty=3,
    answers=(Answer("chunked_loss"),),
    public=(
        Head(),
        Head(481, 24, 384, 96, ignored=0.4, upstream=2.5),
        Head(512, 16, 512, 64, ignored=0.2, ignore_index=0, silent_end=True),
        Head(96, 8, 640, 128, ignored=0.0, loud=40.0),
    ),
    inputs=head_inputs,
    drive=drive_chunked_loss,
    run=Run(wall_s=20.0),
    meters=("memory",),
    forbids=("torch.nn.functional.linear_cross_entropy", "torch.nn.LinearCrossEntropyLoss"),
)
