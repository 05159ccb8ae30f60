"""Lab 95, hidden cases."""

from __future__ import annotations

from grading.hidden import Hidden
from tests.grading.lab95.exercises import Matrix

TRANSPOSE = Hidden("95-transpose", lambda rng: (Matrix(rng.randrange(34, 60), rng.randrange(34, 60)),))
