"""Lab 04: hidden shapes, tiles and chips."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.function_calls import Call

TILES = ((256, 128), (128, 256), (128, 64), (64, 256))


def shapes(rng: random.Random) -> tuple[Call, ...]:
    """Tiles in both orientations, a grid that fits exactly in so many waves that with another chip's multiprocessors
    they are off by more than one, one of full tiles of which a few make a second wave, one with a last row of tiles
    that is nearly empty and makes a second wave, numbers to pad, one of them by much and one not at all; in the last
    one, every other power of two gives another number. None lies just below a multiple of 128, which would not tell
    bytes from numbers.
    """
    n_sms, across, down = rng.choice((80, 114, 132)), rng.randint(40, 60), rng.randint(5, 8)
    return (
        *(
            Call("tiles_and_waves", (rng.randint(900, 5000), rng.randint(900, 5000), *tile, n_sms))
            for tile in rng.sample(TILES, 3)
        ),
        Call("tiles_and_waves", (128 * n_sms, 64 * across, 128, 64, n_sms)),
        Call("tiles_and_waves", (128 * down, 64 * (n_sms // down + 1), 128, 64, n_sms)),
        Call("tiles_and_waves", (128 * (down - 1) + 1, 64 * (n_sms // down + 1), 128, 64, n_sms)),
        Call("padded", (rng.randrange(1001, 60001, 2), 2, rng.choice((16, 128)))),
        Call("padded", (128 * rng.randint(2, 450) + rng.randint(1, 20), 2, 128)),
        Call("padded", (128 * rng.randint(2, 200) + 32, 4, 128)),
        Call("padded", (128 * rng.randint(1, 70) + rng.randrange(1, 8, 2), 1, 16)),
    )


ALIGNMENT = Hidden("04-alignment", shapes)
