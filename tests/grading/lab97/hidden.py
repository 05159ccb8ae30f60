"""Lab 97, hidden cases."""

from __future__ import annotations

from grading.hidden import Hidden
from tests.grading.lab97.exercises import Rows, Size

ADD = Hidden("97-add", lambda rng: (Size(rng.randrange(260, 500)), Size(1)))
SOFTMAX = Hidden("97-softmax", lambda rng: (Rows(rng.randrange(2, 6), 128), Rows(2, rng.randrange(65, 79))))
TOTAL = Hidden("97-total", lambda rng: (Size(rng.randrange(1000, 1200)),))
SILU = Hidden("97-silu", lambda rng: (Size(rng.randrange(100, 200)),))
PRODUCT = Hidden("97-product", lambda rng: (Size(32),))
