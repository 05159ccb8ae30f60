"""Answers to lab 97 that earn nothing: what each tries, the exercise, cells, and how its verdict must read.

A cheat's cells are put behind the imports, the last of them is the answer's own.
"""

from __future__ import annotations

from tests.grading.lab97.cheats.at_full_size import FULL_SIZE_CHEATS
from tests.grading.lab97.cheats.by_torch import BY_TORCH_CHEATS
from tests.grading.lab97.cheats.kernels import KERNEL_CHEATS
from tests.grading.lab97.cheats.records import RECORD_CHEATS

__all__ = ["CHEATS"]
CHEATS = (*BY_TORCH_CHEATS, *RECORD_CHEATS, *KERNEL_CHEATS, *FULL_SIZE_CHEATS)
