"""Lab 05: hidden cases of segments."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab05.segments import Depth


def segments_cases(rng: random.Random) -> tuple[Depth, ...]:
    """Costs on both sides of 1, one so small that the root rounds to 0, and one with the root beyond all layers.

    Two have the root near the middle of two whole numbers, where rounding does not tell the better one.
    """
    cases = [Depth(rng.randint(40, 60), 1.0, 7), Depth(rng.randint(40, 60), rng.uniform(3.0, 9.0), 8)]
    for above in (True, False):
        root, n_layers = rng.randint(12, 20), rng.randint(40, 90)
        # Above k (k + 1) the larger neighbour is better, below it the smaller one; the root rounds up from 1/4 above.
        product = root * (root + 1) + (0.2 if above else -0.4 * root)
        cases.append(Depth(n_layers, product / n_layers, rng.randint(5, 12)))
    shallow = rng.randint(8, 30)
    return (
        *cases,
        Depth(shallow, rng.uniform(1.2, 3.0) * shallow, 3),
        Depth(rng.randint(6, 10), 0.02, 1),
        Depth(10 * rng.randint(3, 6) + 9, rng.uniform(0.5, 6.0), 10),
    )


SEGMENTS = Hidden("05-segments", segments_cases)
