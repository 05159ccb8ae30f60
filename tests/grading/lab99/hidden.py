"""Lab 99, hidden cases."""

from __future__ import annotations

from grading.hidden import Hidden
from labkit.spec import Case
from tests.grading.lab99.exercises import Size

DOUBLE = Hidden("99-double", lambda rng: (Size(rng.randrange(1_000, 2_000)), Size(1)))
SLOW = Hidden("99-slow", lambda rng: (Size(rng.randrange(5, 9)),))
SHARE = Hidden("99-share", lambda rng: (Case(),))
MEASURED = Hidden("99-measured", lambda rng: (Size(rng.randrange(1_000, 1_100)),))
ALL_REDUCE = Hidden("99-all-reduce", lambda rng: (Size(rng.randrange(10, 100)), Size(0)))
