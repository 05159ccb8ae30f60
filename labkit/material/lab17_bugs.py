"""Lab 17: one run of the composed model for each kind of bug, for the notebook to look at. Nothing is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from labkit.exercises.lab17.compose_bugs import CLIPPED, TIES
from labkit.exercises.lab17.composed import Finish, Grads, Layout, OneRank, draw, one_process, parts
from labkit.exercises.lab17.planted import NONE, SITES, Bug
from labkit.ranks import Comm, simulate

LAYOUT = Layout(tensor=4, data=2, kv_heads=2)


@dataclass(frozen=True)
class Run:
    """reference, ranks: gradients by rank and name, as they should be and as they are. losses: of one step, on the
    ranks with this bug and without any."""

    kind: str
    reference: list[Grads]
    ranks: list[Grads]
    groups: dict[str, list[list[int]]]
    losses: tuple[float, float]


def run_with(kind: str, parameter: str = "", seed: int = 17) -> Run:
    """A run of 2 x 4 ranks with a bug of this kind, or "none". parameter: where, unless it is the first that may be."""
    bug = Bug(kind, parameter or SITES.get(kind, (NONE,))[0])
    layout = replace(LAYOUT, tied=kind == TIES, clipped=kind == CLIPPED)
    weights, batches = draw(layout, torch.Generator().manual_seed(seed))

    def rank(comm: Comm, planted: Bug) -> tuple[Grads, float]:
        one = OneRank(layout, comm, planted)
        return one.gradients(weights, batches), one.loss_now

    got = simulate(lambda comm: rank(comm, bug), layout.n_ranks)[0]
    right = simulate(lambda comm: rank(comm, Bug(NONE, NONE)), layout.n_ranks)[0]
    losses = tuple(sum(loss for _, loss in ranks) / layout.n_ranks for ranks in (got, right))
    return Run(
        kind, parts(one_process(layout, weights, batches), layout), [grads for grads, _ in got], layout.groups, losses
    )


def run_finished_by(finish: Finish, seed: int = 17) -> Run:
    """The same run without a bug up to the end of the backward pass, and then this."""
    layout = replace(LAYOUT, tied=True)
    weights, batches = draw(layout, torch.Generator().manual_seed(seed))

    def rank(comm: Comm) -> tuple[Grads, float]:
        one = OneRank(layout, comm)
        return one.gradients(weights, batches, finish), one.loss_now

    got = simulate(rank, layout.n_ranks)[0]
    loss = sum(one for _, one in got) / layout.n_ranks
    reference = parts(one_process(layout, weights, batches), layout)
    return Run("", reference, [grads for grads, _ in got], layout.groups, (loss, loss))
