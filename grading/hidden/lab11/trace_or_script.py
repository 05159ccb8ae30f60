"""Lab 11: hidden widths and sizes for an exported gate."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.trace_or_script import Exported


def exports(rng: random.Random) -> tuple[Exported, ...]:
    return tuple(Exported(rng.randint(2, 9), tuple(rng.sample(range(2, 20), 3))) for _ in range(2))


TRACE_OR_SCRIPT = Hidden("11-trace-or-script", exports)
