"""Lab 20: hidden scripts with knobs; their tables are drawn with the inputs."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab20.ablation import Knobs
from labkit.material.lab20_knobs import KNOBS


def scripts(rng: random.Random) -> tuple[Knobs, ...]:
    """Two knobs to six."""
    return tuple(Knobs(tuple(rng.sample(list(KNOBS), n)), drawn) for drawn, n in enumerate((3, 2, 4, 5, 6)))


ABLATION = Hidden("20-ablation", scripts)
