"""Lab 94, hidden cases."""

from __future__ import annotations

from grading.hidden import Hidden
from labkit.spec import Case

SCRIPT = Hidden("94-script", lambda rng: (Case(),))
