"""Lab 03: hidden trainings. What tells the mistakes apart comes first."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab03.loss_scaler import ScaledTraining


def trainings(rng: random.Random) -> tuple[ScaledTraining, ...]:
    """Clean steps first, so that a wrong count shows; then infinity in each parameter, NaN, both, clipping, below 1."""
    interval = rng.randint(3, 4)
    one, two = sorted(rng.sample(range(interval + 1, 3 * interval), 2))
    return (
        ScaledTraining("sgd", 3 * interval, growth_interval=interval),
        ScaledTraining("sgd", 9, nan_in_steps=(0, 1, rng.randint(2, 4)), infinity_in_steps=(rng.randint(5, 8),)),
        ScaledTraining("adamw", 9, nan_in_steps=(1, rng.randint(3, 5)), n_param_groups=2),
        ScaledTraining(
            "adamw",
            3 * interval,
            nan_in_steps=(one,),
            infinity_in_steps=(two,),
            growth_interval=interval,
            unscale_in_steps=(0, 1, 3, two),
        ),
        ScaledTraining("adamw", 12, init_scale=2.0 ** rng.randint(18, 22), growth_factor=4.0, backoff_factor=0.125),
        ScaledTraining(
            rng.choice(("sgd", "adamw")),
            16,
            init_scale=2.0 ** rng.randint(4, 12),
            growth_interval=rng.randint(2, 5),
            infinity_in_steps=tuple(sorted(rng.sample(range(16), 3))),
            nan_in_steps=(rng.randint(0, 15),),
            unscale_in_steps=tuple(sorted(rng.sample(range(16), 5))),
        ),
        ScaledTraining("sgd", 5, init_scale=2.0 ** rng.randint(0, 2), infinity_in_steps=(0, 1, 2, 3)),
    )


LOSS_SCALER = Hidden("03-loss-scaler", trainings)
