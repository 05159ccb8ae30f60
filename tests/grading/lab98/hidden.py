"""Lab 98, hidden cases."""

from __future__ import annotations

from grading.hidden import Hidden
from tests.grading.lab98.exercises import Ranks

PROGRAM = Hidden("98-program", lambda rng: (Ranks(2),))
SUM = Hidden("98-sum", lambda rng: (Ranks(rng.randrange(3, 5), size=rng.randrange(6, 12)), Ranks(1)))
LAYERS = Hidden(
    "98-layers",
    lambda rng: (Ranks(2, size=rng.randrange(5000, 6000)),),
    memory_cases=lambda rng: (Ranks(2, size=2**20),),
)
ROOM = Hidden(
    "98-room",
    lambda rng: (Ranks(rng.randrange(2, 4), size=rng.randrange(5000, 6000)),),
    memory_cases=lambda rng: (Ranks(3, size=16 * 2**20),),
)
