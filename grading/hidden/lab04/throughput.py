"""Lab 04: hidden layers and GPUs on the roofline."""

from __future__ import annotations

import random
from collections.abc import Callable

from grading.hidden import Hidden
from labkit.exercises.lab01.function_calls import Call


def calls(rng: random.Random) -> tuple[Call, ...]:
    """Wide and narrow layers, few rows and many, two sizes of numbers, with and without accumulation."""

    def gpu() -> tuple[float, float]:
        return rng.randint(80, 1000) * 1e12, rng.randint(800, 4000) * 1e9

    def starving_gpu() -> tuple[float, float]:
        """Compute-bound from more rows than the few of a case with short texts."""
        return rng.randint(400, 1000) * 1e12, rng.randint(800, 2000) * 1e9

    def balanced_gpu() -> tuple[float, float]:
        return rng.randint(100, 200) * 1e12, rng.randint(2000, 3000) * 1e9

    def layer(texts: int, length: int, n: int, n_accumulate: int, itemsize: int, gpu: Callable = gpu) -> Call:
        return Call("tokens_per_second", (texts, length, n, n_accumulate, *gpu(), itemsize, rng.choice((16, 20, 28))))

    return (
        Call("compute_bound_rows", (rng.randint(4000, 9000), *gpu(), 2)),
        Call("compute_bound_rows", (rng.randint(9000, 12000), *gpu(), 4)),
        Call("compute_bound_rows", (rng.randint(40, 100), 400e12, 1500e9, 2)),
        Call("compute_bound_rows", (rng.randint(600, 1000), 400e12, 1500e9, 4)),
        layer(rng.randint(2, 4), rng.randint(5, 20), rng.randint(2000, 5000), rng.randint(2, 8), 2, starving_gpu),
        layer(rng.randint(8, 16), rng.randint(500, 900), rng.randint(4000, 6000), rng.randint(2, 8), 2),
        layer(rng.randint(2, 4), rng.randint(60, 200), rng.randint(1000, 2000), 1, 4),
        layer(1, rng.randint(5, 20), rng.randint(2000, 5000), 1, 4, starving_gpu),
        layer(rng.randint(4, 8), rng.randint(300, 500), rng.randint(2000, 3000), rng.randint(2, 4), 4, balanced_gpu),
    )


THROUGHPUT = Hidden("04-throughput", calls)
