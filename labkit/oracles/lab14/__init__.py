"""Lab 14, collectives: what is true of a right answer."""

from labkit.oracles.lab14.all_reduce import BUTTERFLY, NAIVE, RING, TREE
from labkit.oracles.lab14.cost_model import COST_MODEL
from labkit.oracles.lab14.hierarchical import HIERARCHICAL
from labkit.oracles.lab14.reduce_scatter import REDUCE_SCATTER

__all__ = [
    "BUTTERFLY",
    "COST_MODEL",
    "HIERARCHICAL",
    "NAIVE",
    "REDUCE_SCATTER",
    "RING",
    "TREE",
]
