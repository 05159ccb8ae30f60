"""Lab 06: hidden matrices, models and steps of Muon."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab06.adamw import Grouping
from labkit.exercises.lab06.muon import Matrix, MuonSteps


def muon_cases(rng: random.Random) -> tuple[Matrix | Grouping | MuonSteps, ...]:
    return (
        Matrix((rng.randint(6, 12), rng.randint(20, 30))),
        Matrix((rng.randint(12, 20), 40), "built"),
        Matrix((rng.randint(400, 600), 16), scale=10.0 ** rng.randint(-4, -2)),
        Matrix((rng.randint(3, 6), 5), "zeros"),
        Grouping(rng.randint(1, 4), tied=False, places=rng.random() < 0.5),
        Grouping(rng.randint(1, 4), tied=True, places=True),
        MuonSteps(n_steps=1, weight_decay=0.0, lr=0.08),
        MuonSteps(n_steps=rng.randint(3, 5), momentum=0.85),
        MuonSteps(n_steps=rng.randint(3, 5), adjust="match_rms_adamw", lr=0.02),
        MuonSteps(n_steps=rng.randint(4, 6), momentum=0.85, rare=True),
        MuonSteps(n_steps=2, n_large=1, n_rows=rng.randint(1800, 2200)),
    )


def large_steps(rng: random.Random) -> tuple[MuonSteps, ...]:
    """48 MiB of weights in 48 matrices: a second buffer takes 48 MiB more."""
    return (MuonSteps(n_steps=2, n_large=48, n_rows=8192),)


MUON = Hidden("06-muon", muon_cases, memory_cases=large_steps)
