"""Lab 05: hidden cases of offloaded activations."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab05.offload import Layers


def layers_cases(rng: random.Random) -> tuple[Layers, ...]:
    """Enough layers that holding their activations stands out; in the last, these have the shape of a weight."""
    widths = [8 * rng.randint(3, 6) for _ in range(3)]
    return tuple(
        Layers(
            n_layers=rng.randint(9, 13),
            n_tokens=n_tokens,
            width=width,
            n_in_flight=n_in_flight,
            copy_share=round(rng.uniform(0.5, 0.8), 2),
        )
        for n_tokens, width, n_in_flight in zip(
            (8 * rng.randint(4, 9), 8 * rng.randint(4, 9), widths[-1]), widths, (3, rng.randint(3, 4), 4), strict=True
        )
    )


OFFLOAD = Hidden("05-offload", layers_cases)
