"""Lab 18: what is asked, given and run for a training step over stages that send and receive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab18.model import IGNORED, make_stage, warm_up
from labkit.spec import Answer, Case, Exercise, Run

LEARNING_RATE = 0.1
LARGE = 2**17
"""From so many elements of a parameter on, only some of it come back."""
SOME = 499

Pass = tuple[str, int]


@dataclass(frozen=True)
class Steps(Case):
    """orders: by rank its passes, "F0 F1 B0 B1". sizes: by micro-batch its texts and their length.

    n_layers: of each stage. all_ignored: of this micro-batch no token counts (-1: of none).
    """

    name: str
    orders: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]
    n_layers: tuple[int, ...] = (1, 1, 1)
    width: int = 4
    vocab: int = 7
    n_steps: int = 2
    all_ignored: int = -1

    @property
    def n_ranks(self) -> int:
        return len(self.orders)

    @property
    def is_large(self) -> bool:
        return self.width * max(self.vocab, 4 * self.width) >= LARGE

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        """Of each micro-batch's activations."""
        return [(*size, self.width) for size in self.sizes]

    def order_of(self, rank: int) -> list[Pass]:
        return [(text[0], int(text[1:])) for text in self.orders[rank].split()]

    def most_alive(self, rank: int) -> int:
        """The most micro-batches that have gone forward and not yet back, in this order."""
        n_alive = [0]
        for kind, _ in self.order_of(rank):
            n_alive.append(n_alive[-1] + (1 if kind == "F" else -1))
        return max(n_alive)


def texts(case: Steps, gen: torch.Generator) -> dict[str, Any]:
    """The seed of the weights; for the first rank token ids, for the last one what they should be."""
    parts: list[dict[str, Any]] = [{"tokens": None, "targets": None} for _ in case.orders]
    seed = int(torch.randint(2**40, (), generator=gen))
    tokens, targets = [], []
    for k, (rows, length) in enumerate(case.sizes):
        tokens.append(torch.randint(case.vocab, (rows, length), generator=gen))
        wanted = torch.randint(case.vocab, (rows, length), generator=gen)
        # Texts end at different places; the first one of a micro-batch is whole.
        ends = torch.randint(1, length + 1, (rows, 1), generator=gen)
        ends[0] = length
        wanted[torch.arange(length) >= ends] = IGNORED
        targets.append(torch.full_like(wanted, IGNORED) if k == case.all_ignored else wanted)
    parts[0]["tokens"], parts[-1]["targets"] = tokens, targets
    return {"seed": seed, "ranks": parts}


def some(tensor: Tensor, case: Steps) -> Tensor:
    """What comes back of a parameter or its gradient."""
    if not case.is_large:
        return tensor.detach().clone()
    return tensor.detach().flatten()[torch.arange(0, tensor.numel(), SOME)]


def drive(ans, case: Steps, tree: dict, stage) -> dict[str, Any]:
    """losses: of each step, as returned on the last rank; has_graph: whether one of them can go back; grads: after the
    first step (None where there is none); weights: after all steps; alive: the most micro-batches whose activations
    were kept at once."""
    rank, comm = stage.rank, stage.comm
    mine = tree["mine"]
    losses, grads, has_graph = [], [], False
    warm_up()
    with stage.meter("memory"):
        part = make_stage(case.n_layers, case.width, case.vocab, tree["seed"], rank)
        for step in range(case.n_steps):
            loss = ans.pipeline_step(comm, part, case.order_of(rank), case.shapes, mine["tokens"], mine["targets"])
            if rank == case.n_ranks - 1:
                has_graph |= isinstance(loss, Tensor) and loss.requires_grad
                losses.append(None if loss is None else float(loss.detach() if isinstance(loss, Tensor) else loss))
            with torch.no_grad():
                for parameter in part.parameters():
                    if step == 0:
                        grads.append(None if parameter.grad is None else some(parameter.grad, case))
                    if parameter.grad is not None:
                        parameter -= LEARNING_RATE * parameter.grad
                        parameter.grad = None
        weights = [some(parameter, case) for parameter in part.parameters()]
    alive = part.alive.most
    return {"losses": losses, "has_graph": has_graph, "grads": grads, "weights": weights, "alive": alive}


EVEN = ((2, 3),) * 4
UNEVEN = ((3, 4), (1, 2), (2, 5), (1, 7), (4, 2))
GPIPE_3_4 = ("F0 F1 F2 F3 B0 B1 B2 B3",) * 3
GPIPE_3_4_BACK = ("F0 F1 F2 F3 B3 B2 B1 B0",) * 3
ONE_3_4 = (
    "F0 F1 F2 B0 F3 B1 B2 B3",
    "F0 F1 B0 F2 B1 F3 B2 B3",
    "F0 B0 F1 B1 F2 B2 F3 B3",
)
ONE_3_5 = (
    "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4",
    "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4",
    "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4",
)
ONE_2_4 = ("F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3")
MANY = 24
ONE_3_24 = (
    "F0 F1 F2 " + " ".join(f"B{k} F{k + 3}" for k in range(MANY - 3)) + " B21 B22 B23",
    "F0 F1 " + " ".join(f"B{k} F{k + 2}" for k in range(MANY - 2)) + " B22 B23",
    " ".join(f"F{k} B{k}" for k in range(MANY)),
)

PIPELINE_STEP = Exercise(
    id="18-pipeline-step",
    title="A real training step",
    points=5,
    minutes=45,
    difficulty=3,
    answers=(Answer("pipeline_step"),),
    public=(
        Steps("GPipe", GPIPE_3_4, EVEN),
        Steps("1F1B", ONE_3_4, EVEN, (2, 1, 1)),
        Steps("1F1B", ONE_3_5, UNEVEN, (1, 2, 1)),
        Steps("GPipe, backward from the last", GPIPE_3_4_BACK, EVEN, all_ignored=2),
        Steps("1F1B", ONE_2_4, UNEVEN[:4], (1, 1)),
        Steps("1F1B", ONE_3_24, ((8, 32),) * MANY, width=32, n_steps=1),
        Steps("one stage", ("F0 F1 B0 B1",), UNEVEN[:2], (2,)),
    ),
    inputs=texts,
    drive=drive,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=40.0),
    meters=("memory",),
)
