"""Lab 09: hidden cases of the caching allocator; the traces themselves are drawn with the inputs."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab09.allocator import AllocationTrace


def trace_cases(rng: random.Random) -> tuple[AllocationTrace, ...]:
    """Sizes alone, then one pool at a time, then everything."""

    def case(kind: str, n_events: int) -> AllocationTrace:
        return AllocationTrace(
            kind,
            n_events,
            step_ms=round(rng.uniform(20, 200), 1),
            malloc_ms=round(rng.uniform(0.2, 1.5), 2),
            free_ms=round(rng.uniform(0.2, 1.5), 2),
        )

    return (
        case("sizes", 0),
        case("small", rng.randint(40, 60)),
        case("large", rng.randint(60, 80)),
        case("mixed", rng.randint(60, 80)),
        case("mixed", rng.randint(80, 120)),
    )


ALLOCATOR = Hidden("09-allocator", trace_cases)
