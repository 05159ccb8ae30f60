"""Lab 14: hidden cases of the all-reduce over nodes."""

from __future__ import annotations

import random

from grading.hidden import Hidden, drawn
from labkit.exercises.lab14.hierarchical import Nodes, OnNodes, filled


def shuffled(rng: random.Random, n_nodes: int, per_node: int) -> Nodes:
    """Any deal at all, except the one that fills node after node; the last rank is on the last node."""

    def deal() -> Nodes:
        ranks = rng.sample(range(n_nodes * per_node), n_nodes * per_node)
        nodes = [tuple(sorted(ranks[at : at + per_node])) for at in range(0, len(ranks), per_node)]
        return tuple(sorted(nodes, key=max))

    return drawn(deal, lambda dealt: dealt != filled(n_nodes, per_node))


def hierarchical_cases(rng: random.Random) -> tuple[OnNodes, ...]:
    """Sizes that no number of ranks divides, nodes dealt at random, one node, nodes of one rank, few elements."""
    return (
        OnNodes(filled(3, 4), 12 * rng.randint(15, 25) + rng.randint(1, 11)),
        OnNodes(shuffled(rng, 3, rng.randint(2, 4)), rng.randint(150, 300)),
        OnNodes(shuffled(rng, 4, 2), 8 * rng.randint(10, 20) + rng.randint(1, 7), "int64"),
        OnNodes(filled(1, rng.randint(2, 5)), rng.randint(20, 40)),
        OnNodes(filled(rng.randint(2, 5), 1), rng.randint(20, 40)),
        OnNodes(shuffled(rng, 2, 3), rng.randint(1, 5)),
    )


HIERARCHICAL = Hidden("14-hierarchical", hierarchical_cases)
