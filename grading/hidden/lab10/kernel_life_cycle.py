"""Lab 10: hidden cases of a chain of functions in one kernel."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.kernel_life_cycle import Fused


def chains(rng: random.Random) -> tuple[Fused, ...]:
    """Aligned and with a rest; one or all tensors out of step; far from the beginning, but aligned."""
    n = [4 * rng.randint(300, 900) + rng.randint(1, 3) for _ in range(5)]
    return (
        Fused(n[0]),
        Fused(n[1], z_at=rng.randint(1, 3)),
        Fused(n[2], x_at=rng.randint(1, 3)),
        Fused(n[3], *([rng.randint(1, 3)] * 3)),
        Fused(n[4], 4 * rng.randint(1, 9), 4, 0),
    )


KERNEL_LIFE_CYCLE = Hidden("10-kernel-life-cycle", chains)
