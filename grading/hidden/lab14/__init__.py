"""Lab 14, collectives: hidden cases."""

from grading.hidden.lab14.all_reduce import BUTTERFLY, NAIVE, RING, TREE
from grading.hidden.lab14.cost_model import COST_MODEL
from grading.hidden.lab14.hierarchical import HIERARCHICAL
from grading.hidden.lab14.reduce_scatter import REDUCE_SCATTER

__all__ = [
    "BUTTERFLY",
    "COST_MODEL",
    "HIERARCHICAL",
    "NAIVE",
    "REDUCE_SCATTER",
    "RING",
    "TREE",
]
