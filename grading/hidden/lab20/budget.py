"""Lab 20: hidden seeds and a hidden size for the training script."""

from __future__ import annotations

from grading.hidden import Hidden
from labkit.exercises.lab20.budget import Try

N_SEEDS = 3
"""As the rules of the game have it."""

BUDGET = Hidden("20-budget", cases=lambda rng: (Try(N_SEEDS),))
