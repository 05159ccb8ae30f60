"""Lab 14, collectives: what is asked, fed and run."""

# isort: off
# In the order of the notebook, which is the order in which `progress` lists them.
from labkit.exercises.lab14.all_reduce import NAIVE, TREE, BUTTERFLY, RING
from labkit.exercises.lab14.reduce_scatter import REDUCE_SCATTER
from labkit.exercises.lab14.hierarchical import HIERARCHICAL
from labkit.exercises.lab14.cost_model import COST_MODEL

# isort: on

__all__ = [
    "BUTTERFLY",
    "COST_MODEL",
    "HIERARCHICAL",
    "NAIVE",
    "REDUCE_SCATTER",
    "RING",
    "TREE",
]
