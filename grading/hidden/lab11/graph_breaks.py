"""Lab 11: hidden sizes and weights of a model that is to be one graph."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.graph_breaks import Rewritten


def rewritten_cases(rng: random.Random) -> tuple[Rewritten, ...]:
    return (
        Rewritten(n_rows=rng.randint(2, 9), width=rng.randint(3, 12), n_layers=1, growth=0.3),
        Rewritten(n_rows=rng.randint(2, 9), width=rng.randint(3, 12), n_layers=1, growth=rng.uniform(4, 8)),
        Rewritten(n_rows=rng.randint(2, 9), width=rng.randint(6, 12), n_layers=rng.randint(3, 5), n_batches=5),
        Rewritten(n_rows=1, width=rng.randint(4, 9), n_layers=2),
    )


GRAPH_BREAKS = Hidden("11-graph-breaks", rewritten_cases)
