"""Lab 17: a small transformer under tensor, sequence and data parallelism at once, and the same in one process.

Everything is in float64, so that gradients of the two agree to 12 digits. One of the bugs of `planted` may be in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab17.planted import NO_BUG, Bug
from labkit.exercises.lab17.sequence_calls import gather, scatter, sum_over
from labkit.ranks import Comm, simulate

Grads = dict[str, Tensor]
Finish = Callable[[Grads, dict[str, str], list[tuple[str, str]], Comm, Comm, Comm], None]
"""(gradients, how each parameter is cut, pairs of names of one weight, communicators of the tensor group, of the ranks
with the same key head, and of the data group): changes the gradients."""

TIE = ("embed.weight", "head.weight")

WIDTH, HEAD, N_BLOCKS, N_TOKENS = 8, 4, 2, 12
HIDDEN = VOCAB = 24
DROPPED = 0.5
CLIPPED_TO = 1e-2
EPS = 1e-5


@dataclass(frozen=True)
class Layout:
    """tensor ranks of a tensor group, which also cut the sequence, and data such groups; kv_heads: of a layer, a
    divisor of tensor. tied: whether embedding and head are one weight, of which both have a copy. clipped: whether
    gradients are clipped, and to a norm that all of them exceed.

        Layout(tensor=4, data=2, kv_heads=2)
    """

    tensor: int
    data: int
    kv_heads: int
    tied: bool = False
    clipped: bool = False

    @property
    def n_ranks(self) -> int:
        return self.tensor * self.data

    @property
    def groups(self) -> dict[str, list[list[int]]]:
        """Tensor groups are neighbours."""
        t = self.tensor
        return {
            "tensor": [list(range(d * t, (d + 1) * t)) for d in range(self.data)],
            "data": [list(range(i, self.n_ranks, t)) for i in range(t)],
        }


def shapes(layout: Layout) -> dict[str, tuple[tuple[int, ...], str]]:
    """By name the shape of a parameter, in the order of the forward pass, and how it is cut: "whole" on every rank of a
    tensor group, used on parts of the sequence; by "rows" or "columns"; or "kv", rows of which several ranks have the
    same."""
    found: dict[str, tuple[tuple[int, ...], str]] = {
        "embed.weight": ((VOCAB, WIDTH), "rows"),
        "positions.weight": ((N_TOKENS, WIDTH), "rows"),
    }
    q, kv = layout.tensor * HEAD, layout.kv_heads * HEAD
    for b in range(N_BLOCKS):
        found |= {
            f"blocks.{b}.norm1.weight": ((WIDTH,), "whole"),
            f"blocks.{b}.q.weight": ((q, WIDTH), "rows"),
            f"blocks.{b}.k.weight": ((kv, WIDTH), "kv"),
            f"blocks.{b}.v.weight": ((kv, WIDTH), "kv"),
            f"blocks.{b}.o.weight": ((WIDTH, q), "columns"),
            f"blocks.{b}.o.bias": ((WIDTH,), "whole"),
            f"blocks.{b}.norm2.weight": ((WIDTH,), "whole"),
            f"blocks.{b}.up.weight": ((HIDDEN, WIDTH), "rows"),
            f"blocks.{b}.up.bias": ((HIDDEN,), "rows"),
            f"blocks.{b}.down.weight": ((WIDTH, HIDDEN), "columns"),
            f"blocks.{b}.down.bias": ((WIDTH,), "whole"),
        }
    return found | {"norm.weight": ((WIDTH,), "whole"), "head.weight": ((VOCAB, WIDTH), "rows")}


@dataclass(frozen=True)
class Batch:
    """What one data group trains on: tokens, their successors, and where dropout keeps an element, by place."""

    tokens: Tensor
    targets: Tensor
    kept: dict[str, Tensor]


def draw(layout: Layout, gen: torch.Generator) -> tuple[Grads, list[Batch]]:
    """Weights, and a batch for each data group. Biases of row-parallel layers are 0, as at the start of training."""
    weights = {}
    for name, (shape, _) in shapes(layout).items():
        value = torch.randn(shape, generator=gen, dtype=torch.float64)
        weights[name] = value / math.sqrt(shape[-1]) if len(shape) > 1 else 1 + 0.3 * value
        if name.endswith(("o.bias", "down.bias")):
            weights[name] = torch.zeros(shape, dtype=torch.float64)
    if layout.tied:
        weights["head.weight"] = weights["embed.weight"].clone()
    places = ["embed", *(f"blocks.{b}.{part}" for b in range(N_BLOCKS) for part in ("o", "down"))]
    batches = []
    for _ in range(layout.data):
        text = torch.randint(VOCAB, (N_TOKENS + 1,), generator=gen)
        kept = {place: torch.rand(N_TOKENS, WIDTH, generator=gen) >= DROPPED for place in places}
        batches.append(Batch(text[:-1], text[1:], kept))
    return weights, batches


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return weight * x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt()


def dropped(x: Tensor, kept: Tensor) -> Tensor:
    return x * kept / (1 - DROPPED)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of all heads in the last dimension; each key head serves as many query heads as there are."""
    q, k, v = (x.view(len(x), -1, HEAD).transpose(0, 1) for x in (q, k, v))
    k, v = (x.repeat_interleave(len(q) // len(x), 0) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).flatten(1)


def one_process(layout: Layout, weights: Grads, batches: list[Batch]) -> Grads:
    """The gradients of the mean loss of all tokens. A tied weight's whole gradient stands under both names."""
    w = {name: value.clone().requires_grad_() for name, value in weights.items()}
    if layout.tied:
        w["head.weight"] = w["embed.weight"]
    losses = []
    for batch in batches:
        x = dropped(w["embed.weight"][batch.tokens] + w["positions.weight"], batch.kept["embed"])
        for b in range(N_BLOCKS):
            at = f"blocks.{b}."
            n = norm(x, w[at + "norm1.weight"])
            mixed = attend(*(n @ w[f"{at}{part}.weight"].T for part in "qkv"))
            x = x + dropped(mixed @ w[at + "o.weight"].T + w[at + "o.bias"], batch.kept[at + "o"])
            hidden = F.gelu(norm(x, w[at + "norm2.weight"]) @ w[at + "up.weight"].T + w[at + "up.bias"])
            x = x + dropped(hidden @ w[at + "down.weight"].T + w[at + "down.bias"], batch.kept[at + "down"])
        losses.append(F.cross_entropy(norm(x, w["norm.weight"]) @ w["head.weight"].T, batch.targets))
    torch.stack(losses).mean().backward()
    grads = {name: value.grad.clone() for name, value in w.items()}
    if layout.clipped:
        counted = [grad for name, grad in grads.items() if not (layout.tied and name == "head.weight")]
        factor = CLIPPED_TO / torch.stack([grad.square().sum() for grad in counted]).sum().sqrt()
        grads = {name: grad * factor for name, grad in grads.items()}
    return grads


def part_of(whole: Tensor, cut: str, layout: Layout, place: int) -> Tensor:
    """What the rank at this place of a tensor group holds of a parameter."""
    if cut == "whole":
        return whole
    if cut == "kv":
        return whole.chunk(layout.kv_heads)[place * layout.kv_heads // layout.tensor]
    return whole.chunk(layout.tensor, 1 if cut == "columns" else 0)[place]


def parts(grads: Grads, layout: Layout) -> list[Grads]:
    """What each rank should hold, rank after rank."""
    cuts = {name: cut for name, (_, cut) in shapes(layout).items()}
    ranks = range(layout.n_ranks)
    return [
        {name: part_of(grad, cuts[name], layout, rank % layout.tensor).clone() for name, grad in grads.items()}
        for rank in ranks
    ]


def on_ranks(layout: Layout, weights: Grads, batches: list[Batch], bug: Bug = NO_BUG) -> list[Grads]:
    """The gradients that each rank's optimizer would get, from simulated ranks."""
    return simulate(lambda comm: OneRank(layout, comm, bug).gradients(weights, batches), layout.n_ranks)[0]


class OneRank:
    """One rank of the run.

    loss_now: the loss of its data group's tokens, once `gradients` has run.
    """

    def __init__(self, layout: Layout, comm: Comm, bug: Bug = NO_BUG) -> None:
        self.layout, self.comm, self.bug = layout, comm, bug
        self.loss_now = math.nan
        groups = {kind: [comm.new_group(ranks) for ranks in each] for kind, each in layout.groups.items()}
        self.tensor, self.data = (next(filter(None, groups[kind])) for kind in ("tensor", "data"))
        self.place, self.copy = self.tensor.rank, comm.rank // layout.tensor
        per_head = layout.tensor // layout.kv_heads
        first = comm.rank // per_head * per_head
        made = [comm.new_group(range(a, a + per_head)) for a in range(0, layout.n_ranks, per_head)]
        self.replicas = made[first // per_head]

    def gradients(self, weights: Grads, batches: list[Batch], finish: Finish | None = None) -> Grads:
        """finish: what comes after the backward pass, if it is not the right thing or the planted bug."""
        cuts = {name: cut for name, (_, cut) in shapes(self.layout).items()}
        w = {
            name: part_of(value, cuts[name], self.layout, self.place).clone().requires_grad_()
            for name, value in weights.items()
        }
        loss = self.loss(w, batches[self.copy])
        loss.backward()
        self.loss_now = loss.item()
        grads = {name: value.grad for name, value in w.items()}
        if finish is None:
            self.finish(grads, cuts)
        else:
            ties = [TIE] if self.layout.tied else []
            finish(grads, cuts, ties, self.tensor, self.replicas, self.data)
        return grads

    def has(self, kind: str, name: str = "") -> bool:
        """Whether this bug is planted, at this parameter."""
        return self.bug.kind == kind and (not name or self.bug.parameter == name)

    def gather(self, x: Tensor, behind: str) -> Tensor:
        """The whole sequence. behind: the norm that x comes from."""
        return gather(x, self.tensor, not self.has("backward not reduced", behind))

    def add_bias(self, partial: Tensor, bias: Tensor, name: str) -> Tensor:
        """A row-parallel layer's output, of this rank's tokens."""
        if self.has("on every rank", name):
            return scatter(partial + bias, self.tensor)
        return scatter(partial, self.tensor) + bias

    def drop(self, x: Tensor, kept: Tensor) -> Tensor:
        chunks = kept.chunk(self.layout.tensor)
        return dropped(x, chunks[0 if self.has("one seed") else self.place])

    def loss(self, w: Grads, batch: Batch) -> Tensor:
        rows = VOCAB // self.layout.tensor
        x = self.look_up(w["embed.weight"], batch.tokens, rows) + w["positions.weight"]
        x = self.drop(x, batch.kept["embed"])
        for b in range(N_BLOCKS):
            at = f"blocks.{b}."
            n = self.gather(norm(x, w[at + "norm1.weight"]), at + "norm1.weight")
            mixed = attend(*(n @ w[f"{at}{part}.weight"].T for part in "qkv")) @ w[at + "o.weight"].T
            x = x + self.drop(self.add_bias(mixed, w[at + "o.bias"], at + "o.bias"), batch.kept[at + "o"])
            n = self.gather(norm(x, w[at + "norm2.weight"]), at + "norm2.weight")
            hidden = F.gelu(n @ w[at + "up.weight"].T + w[at + "up.bias"]) @ w[at + "down.weight"].T
            x = x + self.drop(self.add_bias(hidden, w[at + "down.bias"], at + "down.bias"), batch.kept[at + "down"])
        logits = self.gather(norm(x, w["norm.weight"]), "norm.weight") @ w["head.weight"].T
        own, here = self.owned(batch.targets, rows)
        picked = torch.where(here, logits.gather(1, own[:, None])[:, 0], 0.0)
        sums = sum_over(torch.stack([logits.exp().sum(1), picked]), self.tensor)
        return (sums[0].log() - sums[1]).mean()

    def look_up(self, table: Tensor, tokens: Tensor, rows: int) -> Tensor:
        own, here = self.owned(tokens, rows)
        return scatter(table[own] * here[:, None], self.tensor)

    def owned(self, numbers: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Numbers among this rank's rows, and which of them are."""
        own = numbers - self.place * rows
        return own.clamp(0, rows - 1), (own >= 0) & (own < rows)

    def finish(self, grads: Grads, cuts: dict[str, str]) -> None:
        """What comes after the backward pass: sums over parts of the sequence and over replicas, ties, the average
        over data groups, and clipping."""
        for name, grad in grads.items():
            if cuts[name] == "whole" and not self.has("not summed", name):
                self.tensor.all_reduce(grad)
            if cuts[name] == "kv" and not self.has("replicas not summed", name):
                self.replicas.all_reduce(grad)
        if self.layout.tied and not self.has("ties not summed"):
            total = grads["embed.weight"] + grads["head.weight"]
            grads["embed.weight"], grads["head.weight"] = total, total.clone()
        for name, grad in grads.items():
            if self.has("wrong group", name):
                self.comm.all_reduce(grad, op="avg")
            elif self.has("wrong world size"):
                self.data.all_reduce(grad)
                grad /= self.layout.n_ranks
            else:
                self.data.all_reduce(grad, op="avg")
            if self.has("averaged twice"):
                grad /= self.layout.data
        if self.has("clipped locally"):
            factor = CLIPPED_TO / torch.stack([grad.square().sum() for grad in grads.values()]).sum().sqrt()
            for grad in grads.values():
                grad *= factor
