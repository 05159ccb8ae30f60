"""Lab 10: hidden traces."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.communicate import Traces


def trace_cases(rng: random.Random) -> tuple[Traces, ...]:
    """All programs in two sizes; then random ones; then more threads, whose programs have more places to race in."""
    return Traces(2), Traces(1, 30 + rng.randrange(10)), Traces(1, 10, most_threads=7)


COMMUNICATE = Hidden("10-communicate", trace_cases)
