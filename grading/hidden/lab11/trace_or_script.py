"""Lab 11: hidden widths and sizes for an exported gate."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.trace_or_script import Exported


def exports(rng: random.Random) -> tuple[Exported, ...]:
    """The smallest number of rows comes once after another one, and once not at all."""
    few = Exported(rng.randint(2, 9), (rng.randint(3, 19), 2, rng.randint(3, 19)))
    return few, Exported(rng.randint(2, 9), tuple(rng.sample(range(3, 20), 3)))


TRACE_OR_SCRIPT = Hidden("11-trace-or-script", exports)
