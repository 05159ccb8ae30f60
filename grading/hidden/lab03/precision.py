"""Lab 03: hidden histograms and hidden trainings. What tells the mistakes apart comes first."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab03.scaler import Training
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
        bell(7, 9, single_gradient_in_bins=(-rng.randint(30, 40),), log2_scales=(0, -rng.randint(15, 20))),
        Magnitudes(-30, 9.0, -60, rng.randint(-16, -6), log2_scales=(0, rng.randint(5, 20)), n_gradients=10_000_000),
    )


UNDERFLOW = Hidden("03-underflow", histograms)


def trainings(rng: random.Random) -> tuple[Training, ...]:
    """Clean steps first, so that a wrong count shows; then infinity in each parameter, NaN, both, clipping, below 1."""
    interval = rng.randint(3, 4)
    one, two = sorted(rng.sample(range(interval + 1, 3 * interval), 2))
    return (
        Training("sgd", 3 * interval, growth_interval=interval),
        Training("sgd", 9, nan_in_steps=(0, 1, rng.randint(2, 4)), infinity_in_steps=(rng.randint(5, 8),)),
        Training("adamw", 9, nan_in_steps=(1, rng.randint(3, 5)), n_param_groups=2),
        Training(
            "adamw",
            3 * interval,
            nan_in_steps=(one,),
            infinity_in_steps=(two,),
            growth_interval=interval,
            unscale_in_steps=(0, 1, 3, two),
        ),
        Training("adamw", 12, init_scale=2.0 ** rng.randint(18, 22), growth_factor=4.0, backoff_factor=0.25),
        Training(
            rng.choice(("sgd", "adamw")),
            16,
            init_scale=2.0 ** rng.randint(4, 12),
            growth_interval=rng.randint(2, 5),
            infinity_in_steps=tuple(sorted(rng.sample(range(16), 3))),
            nan_in_steps=(rng.randint(0, 15),),
            unscale_in_steps=tuple(sorted(rng.sample(range(16), 5))),
        ),
        Training("sgd", 5, init_scale=2.0 ** rng.randint(0, 2), infinity_in_steps=(0, 1, 2, 3)),
    )


LOSS_SCALER = Hidden("03-loss-scaler", trainings)
