"""Lab 14: an all-reduce over nodes of several ranks, whichever ranks the launcher has put on which node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.lab14.group import ranks_of, tensors
from labkit.exercises.lab14.send_guard import SendGuard
from labkit.ranks import Cluster
from labkit.spec import Answer, Case, Exercise, Run

Nodes = tuple[tuple[int, ...], ...]
"""The ranks on each node."""


@dataclass(frozen=True)
class Dealt(Cluster):
    """A cluster whose ranks lie on the nodes as listed, not one node after the other. The last rank has to be on the
    last node, because the number of that rank's node tells how many there are."""

    nodes: Nodes = ()

    def node_of(self, rank: int) -> int:
        """The number of the node that a rank is on."""
        return next(number for number, ranks in enumerate(self.nodes) if rank in ranks)


def filled(n_nodes: int, per_node: int) -> Nodes:
    """Ranks 0, 1, ... fill one node after the other, as torchrun numbers them."""
    return tuple(tuple(range(node * per_node, (node + 1) * per_node)) for node in range(n_nodes))


def round_robin(n_nodes: int, per_node: int) -> Nodes:
    """Rank r is on node r modulo the number of nodes, as `mpirun --map-by node` deals them."""
    return tuple(tuple(range(node, n_nodes * per_node, n_nodes)) for node in range(n_nodes))


@dataclass(frozen=True)
class OnNodes(Case):
    """The ranks of each node, all nodes with the same number of them, and `size` numbers to be added up."""

    nodes: Nodes
    size: int
    dtype: str = "float32"

    @property
    def n_ranks(self) -> int:
        """The ranks of all nodes."""
        return sum(map(len, self.nodes))


def make_inputs(case: OnNodes, gen: torch.Generator) -> dict[str, Any]:
    """Each rank's x (size,), and the nodes that all know."""
    dtype = getattr(torch, case.dtype)
    rows = tensors(case.n_ranks, (case.size,), dtype, gen)
    return {"ranks": [{"x": row} for row in rows], "nodes": [list(ranks) for ranks in case.nodes]}


def drive(ans, case: OnNodes, tree: dict, stage) -> dict[str, Any]:
    """What each rank has at the end."""
    comm = SendGuard(stage.comm)
    out = ans.hierarchical_all_reduce(comm, tree["mine"]["x"], tree["nodes"])
    comm.check()
    return {"out": out}


HIERARCHICAL = Exercise(
    id="14-hierarchical",
    title="An all-reduce that spares the network",
    points=0.4,
    optional=True,
    minutes=25,
    difficulty=3,
    answers=(Answer("hierarchical_all_reduce"),),
    public=(
        OnNodes(filled(3, 4), 240),
        OnNodes(round_robin(3, 4), 240),
        OnNodes(filled(2, 3), 47, "int64"),
        OnNodes(round_robin(4, 2), 61),
        OnNodes(filled(1, 3), 16),
        OnNodes(filled(3, 1), 17),
        OnNodes(filled(2, 4), 5),
    ),
    inputs=make_inputs,
    drive=drive,
    run=Run(wall_s=20.0, ranks=ranks_of, cluster=lambda case: Dealt(nodes=case.nodes)),
)
