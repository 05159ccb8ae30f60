"""Lab 17: what each tensor of an MLP block is on the ranks, found from its values. Nothing is judged.

No messages are sent: one process computes what each rank would have, by autograd, and compares it with the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

N_RANKS, TOKENS, HIDDEN, FFN = 4, 8, 12, 16
STAGES = ("x", "norm(x)", "into A", "x A", "GELU", "x A B", "sum", "y")
"""The tensors of a block in their order, as the figure names them."""


@dataclass(frozen=True)
class Word:
    """replicated, sharded or partial; of a sharded tensor what is cut: "tokens" or "columns".

    Word("sharded", "columns")
    """

    name: str
    along: str = ""


WORDS = ("replicated", "sharded", "partial")


@dataclass
class Colouring:
    """The words that a student has given tensors and their gradients, by stage; without one where they have not.

    Colouring(forward={"x": "replicated"}, backward={"x A": "sharded"})
    """

    forward: dict[str, str] = field(default_factory=dict)
    backward: dict[str, str] = field(default_factory=dict)

    def give_next(self, way: str, stage: str) -> str:
        """Give a tensor ("forward") or its gradient ("backward") the word after the one that it has, and return it."""
        words = {"forward": self.forward, "backward": self.backward}[way]
        words[stage] = WORDS[(WORDS.index(words[stage]) + 1) % len(WORDS)] if stage in words else WORDS[0]
        return words[stage]

    @property
    def n_given(self) -> int:
        return len(self.forward) + len(self.backward)


def word_of(ranks: Sequence[Tensor], whole: Tensor, atol: float = 1e-5) -> Word:
    """Which of the three words the ranks' tensors bear out. Raises ValueError where none does."""
    if all(one.shape == whole.shape and torch.allclose(one, whole, atol=atol) for one in ranks):
        return Word("replicated")
    for dim, along in ((0, "tokens"), (-1, "columns")):
        fits = sum(one.shape[dim] for one in ranks) == whole.shape[dim]
        if fits and torch.allclose(torch.cat(list(ranks), dim), whole, atol=atol):
            return Word("sharded", along)
    if torch.allclose(torch.stack(list(ranks)).sum(0), whole, atol=atol):
        return Word("partial")
    raise ValueError("the ranks' tensors are neither copies nor parts nor terms of the whole one")


def words_of_block(sequence_parallel: bool = False) -> tuple[dict[str, Word], dict[str, Word]]:
    """By stage: what the tensor is in the forward pass, and what its gradient is in the backward pass."""
    generator = torch.Generator().manual_seed(17)
    a = torch.randn(HIDDEN, FFN, generator=generator)
    b = torch.randn(FFN, HIDDEN, generator=generator)
    x, y_grad = (torch.randn(TOKENS, HIDDEN, generator=generator) for _ in range(2))
    whole = _one_process(x, a, b, y_grad)
    ranks = _ranks(whole, a, b, sequence_parallel)
    forward, backward = {}, {}
    for stage in STAGES:
        forward[stage] = word_of([one[stage][0] for one in ranks], whole[stage][0])
        backward[stage] = word_of([one[stage][1] for one in ranks], whole[stage][1])
    return forward, backward


Values = dict[str, tuple[Tensor, Tensor]]
"""By stage the tensor and its gradient."""


def _one_process(x: Tensor, a: Tensor, b: Tensor, y_grad: Tensor) -> Values:
    x.requires_grad_()
    normed = F.layer_norm(x, (HIDDEN,))
    product = normed @ a
    hidden = F.gelu(product)
    out = hidden @ b
    y = x + out
    inner = {"norm(x)": normed, "x A": product, "GELU": hidden, "x A B": out}
    grads = torch.autograd.grad(y, [x, *inner.values()], y_grad)
    values = {stage: (one.detach(), grad) for (stage, one), grad in zip(inner.items(), grads[1:], strict=True)}
    values |= {"x": (x.detach(), grads[0]), "y": (y.detach(), y_grad)}
    return values | {"into A": values["norm(x)"], "sum": values["x A B"]}


def _ranks(whole: Values, a: Tensor, b: Tensor, sequence_parallel: bool) -> list[Values]:
    """What each rank has: between the layers copies or its tokens, and inside them its columns and its terms."""
    found = []
    for rank in range(N_RANKS):
        into = whole["into A"][0].clone().requires_grad_()
        product = into @ a.chunk(N_RANKS, 1)[rank]
        hidden = F.gelu(product)
        out = hidden @ b.chunk(N_RANKS, 0)[rank]
        out_grad = whole["sum"][1]
        grads = torch.autograd.grad(out, [into, product, hidden], out_grad)
        mine = {
            "into A": (into.detach(), grads[0]),
            "x A": (product.detach(), grads[1]),
            "GELU": (hidden.detach(), grads[2]),
            "x A B": (out.detach(), out_grad),
        }
        for stage in ("x", "norm(x)", "sum", "y"):
            pair = whole[stage]
            mine[stage] = tuple(one.chunk(N_RANKS)[rank] for one in pair) if sequence_parallel else pair
        found.append(mine)
    return found
