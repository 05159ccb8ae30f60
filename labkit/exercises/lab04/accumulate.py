"""Lab 04: epochs of training with accumulated gradients on texts of unequal length, on one rank or several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from labkit.ranks import Comm
from labkit.spec import Answer, Case, Exercise, Run

IGNORED = -100
"""The label of padding."""
N_VOCAB, WIDTH = 16, 8
LEARNING_RATE = 0.5
N_EPOCHS = 2


@dataclass(frozen=True)
class Accumulation(Case):
    """n_micro micro-batches of n_texts texts on each of n_ranks ranks, the same in each of two epochs.

    padding_only: one micro-batch of rank 0 has no token that counts. n_hidden: the width of the hidden layer.
    """

    n_micro: int
    n_accumulate: int
    n_ranks: int = 1
    max_norm: float = 1e3
    n_texts: int = 2
    longest: int = 12
    padding_only: bool = False
    n_hidden: int = 48

    @property
    def n_steps(self) -> int:
        """Steps of the optimizer in one epoch."""
        return -(-self.n_micro // self.n_accumulate)


def network(weights: list[Tensor]) -> nn.Sequential:
    """An embedding and two linear layers that predict a token's successor from the token alone."""
    n_hidden = len(weights[1])
    model = nn.Sequential(
        nn.Embedding(N_VOCAB, WIDTH), nn.Linear(WIDTH, n_hidden), nn.Tanh(), nn.Linear(n_hidden, N_VOCAB)
    )
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), weights, strict=True):
            parameter.copy_(value)
    return model


def accumulation_inputs(case: Accumulation, gen: torch.Generator) -> dict[str, Any]:
    """weights: of the network. x, y of a rank: for each micro-batch (n_texts, its longest text), int64."""

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=gen) * (shape[-1] ** -0.5 if len(shape) > 1 else 1)

    def micro_batch(empty: bool) -> tuple[Tensor, Tensor]:
        # Squared, so that short texts are common and micro-batches differ much in their tokens.
        lengths = (torch.rand(case.n_texts, generator=gen).square() * case.longest).ceil().clamp_min(1).long()
        tokens = torch.randint(N_VOCAB, (case.n_texts, int(lengths.max()) + 1), generator=gen)
        x, y = tokens[:, :-1], tokens[:, 1:].clone()
        y[torch.arange(x.shape[1]) >= (torch.zeros_like(lengths) if empty else lengths).unsqueeze(1)] = IGNORED
        return x, y

    n_hidden = case.n_hidden
    weights = [draw(N_VOCAB, WIDTH), draw(n_hidden, WIDTH), draw(n_hidden), draw(N_VOCAB, n_hidden), draw(N_VOCAB)]
    ranks = []
    for rank in range(case.n_ranks):
        pairs = [micro_batch(case.padding_only and rank == 0 and i == 1) for i in range(case.n_micro)]
        ranks.append({"x": [x for x, _ in pairs], "y": [y for _, y in pairs]})
    return {"weights": weights, "ranks": ranks}


class Loader:
    """What a DataLoader offers a training loop: its length, and the micro-batches one after the other."""

    def __init__(self, xs: list[Tensor], ys: list[Tensor]) -> None:
        self._pairs = list(zip(xs, ys, strict=True))

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(self._pairs)


def summing(comm: Comm) -> Any:
    """The sum over all ranks of a tensor, as a new tensor, or of a number."""

    def sum_over_ranks(value: Any) -> Any:
        if isinstance(value, Tensor):
            total = value.detach().clone()
            comm.all_reduce(total)
            return total
        total = torch.tensor([value], dtype=torch.float64)
        comm.all_reduce(total)
        return type(value)(total.item())

    return sum_over_ranks


def drive_accumulation(ans, case: Accumulation, tree: dict, stage) -> dict[str, Any]:
    """gradients: as they were at each step of the optimizer, all parameters in one vector, zero where there are none.

    weights: after the last epoch.
    """
    model, mine = network(tree["weights"]).to(stage.device), tree["mine"]
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    gradients: list[Tensor] = []

    def record(*_: object) -> None:
        found = [torch.zeros_like(one) if one.grad is None else one.grad for one in model.parameters()]
        gradients.append(torch.cat([grad.detach().reshape(-1) for grad in found]))

    optimizer.register_step_pre_hook(record)
    loader = Loader([x.to(stage.device) for x in mine["x"]], [y.to(stage.device) for y in mine["y"]])
    with stage.meter("memory"):
        for _ in range(N_EPOCHS):
            ans.train_epoch(model, optimizer, loader, case.n_accumulate, case.max_norm, summing(stage.comm))
    weights = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    return {"gradients": gradients, "weights": weights}


ACCUMULATE = Exercise(
    id="04-accumulate",
    title="One step, many micro-batches",
    points=5,
    minutes=40,
    difficulty=3,
    answers=(Answer("train_epoch"),),
    public=(
        Accumulation(4, 2),
        Accumulation(5, 3),
        Accumulation(5, 2, n_ranks=2),
        Accumulation(4, 4, n_ranks=3, max_norm=0.05),
        Accumulation(4, 2, padding_only=True),
        Accumulation(8, 8, n_texts=8, longest=64, n_hidden=512),  # activations take most of the memory
    ),
    inputs=accumulation_inputs,
    drive=drive_accumulation,
    run=Run(ranks=lambda case: case.n_ranks),
    meters=("memory",),
)
