"""Lab 96, hidden cases."""

from __future__ import annotations

from grading.hidden import Hidden
from tests.grading.lab96.exercises import Files, Sum

PROGRAM = Hidden("96-program", lambda rng: (Files(2),))
SUM = Hidden("96-sum", lambda rng: (Sum(rng.randrange(4, 7)), Sum(rng.randrange(4, 7))))
