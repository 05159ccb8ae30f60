"""Lab 13: hidden cases of a matrix product in tiles."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab13.matmul import Product


def product_cases(rng: random.Random) -> tuple[Product, ...]:
    """Sizes that no tile divides, in each direction; each precision with strides of its own."""

    def odd(first: int, last: int) -> int:
        return 2 * rng.randrange(first // 2, last // 2) + 1

    return (
        Product(odd(34, 46), odd(18, 30), odd(34, 60), tile=16, b_gap=odd(2, 8)),
        Product(odd(34, 60), odd(66, 90), odd(66, 90), precision="tf32", a_by_columns=True),
        Product(odd(66, 80), odd(34, 60), 2 * odd(64, 76), "float16", b_gap=odd(2, 8)),
        Product(odd(66, 80), odd(66, 90), 2 * odd(18, 30), "float16", tile=64),
    )


MATMUL = Hidden("13-matmul", product_cases)
