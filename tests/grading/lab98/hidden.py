"""Lab 98, hidden cases."""

from __future__ import annotations

from grading.hidden import Hidden
from tests.grading.lab98.exercises import Ranks

PROGRAM = Hidden("98-program", lambda rng: (Ranks(2),))
SUM = Hidden("98-sum", lambda rng: (Ranks(rng.randrange(3, 5), size=rng.randrange(6, 12)), Ranks(1)))
