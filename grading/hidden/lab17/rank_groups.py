"""Lab 17: hidden cases of a cluster's groups."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab17.rank_groups import Grid


def grid_cases(rng: random.Random) -> tuple[Grid, ...]:
    """All dimensions at once, each pair of them, experts over data alone and over data and context; sizes that fit
    into no node, that do not divide, and by which experts cannot be dealt."""
    odd = rng.choice((3, 5))
    return (
        Grid(rng.choice((2, 4)), 8, 2, context=2, pipeline=2),
        Grid(odd, 4, rng.choice((2, 4)), pipeline=odd, expert=1),
        Grid(2, 8, rng.choice((2, 4)), context=2, expert=rng.choice((2, 4))),
        Grid(odd, 8, 2, context=1, pipeline=odd, expert=2),
        Grid(2, 6, rng.choice((2, 3)), context=rng.choice((1, 2)), pipeline=2),
        Grid(1, rng.choice((2, 6)), 1, context=2),
        Grid(4, 4, rng.choice((2, 4)), context=4),
        Grid(2, 4, 2, context=rng.choice((2, 4)), expert=4),
        Grid(4, 4, 8, pipeline=2),
        Grid(2, 6, 4, pipeline=3),
        Grid(2, 8, 2, context=odd),
        Grid(2, 8, 4, pipeline=2, expert=4),
    )


RANK_GROUPS = Hidden("17-rank-groups", grid_cases)
