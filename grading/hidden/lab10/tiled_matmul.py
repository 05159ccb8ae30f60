"""Lab 10: hidden cases of a product in tiles."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.tiled_matmul import Product


def products(rng: random.Random) -> tuple[Product, ...]:
    """No size is a multiple of a tile but k in one case; k from three to five tiles."""

    def odd(low: int, high: int) -> int:
        return 16 * rng.randint(low, high) + rng.randint(1, 15)

    return (
        Product(odd(1, 2), odd(1, 3), 16 * rng.randint(3, 5)),
        Product(odd(1, 2), 48, odd(3, 4)),
        Product(odd(0, 0), odd(2, 3), odd(1, 2)),
    )


TILED_MATMUL = Hidden("10-tiled-matmul", products)
