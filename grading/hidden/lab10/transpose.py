"""Lab 10: hidden cases of a transpose without bank conflicts."""

from __future__ import annotations

from grading.hidden import Hidden
from grading.hidden.lab10.tile import matrix_cases

TRANSPOSE = Hidden("10-transpose", matrix_cases)
