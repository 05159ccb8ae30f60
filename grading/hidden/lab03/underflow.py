"""Lab 03: hidden histograms. What tells the mistakes apart comes first."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab03.underflow import Magnitudes


def histograms(rng: random.Random) -> tuple[Magnitudes, ...]:
    def bell(low: int, high: int, **more) -> Magnitudes:
        center = rng.randint(low, high)
        lowest, highest = center - rng.randint(10, 18), center + rng.randint(9, 13)
        return Magnitudes(center, round(rng.uniform(2.5, 5.5), 2), lowest, highest, **more)

    return (
        bell(
            -26,
            -23,
            single_gradient_in_bins=(rng.randint(8, 11),),
            log2_scales=(0, rng.randint(3, 8), -rng.randint(2, 5)),
        ),
        bell(-27, -23, log2_scales=(0, rng.randint(3, 8), rng.randint(9, 14))),
        bell(-20, -16, empty_bins_at_ends=rng.randint(2, 5), log2_scales=(0, rng.randint(2, 6))),
        bell(-8, -4, log2_scales=(0, -rng.randint(12, 20), rng.randint(18, 24))),
        bell(9, 11, single_gradient_in_bins=(-rng.randint(30, 40),), log2_scales=(0, -rng.randint(15, 20))),
        Magnitudes(-30, 9.0, -60, rng.randint(-16, -6), log2_scales=(0, rng.randint(5, 20)), n_gradients=10_000_000),
    )


UNDERFLOW = Hidden("03-underflow", histograms)
