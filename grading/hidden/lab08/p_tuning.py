"""Lab 08, p-tuning: hidden cases. What tells the mistakes apart comes first, as in the public ones."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab08.p_tuning import PTuning


def ptuning_cases(rng: random.Random) -> tuple[PTuning, ...]:
    return (
        PTuning(n_prompt=rng.randint(3, 8), width=rng.randint(5, 9)),
        PTuning(n_prompt=rng.randint(3, 8), width=rng.randint(3, 9), kind="LSTM"),
        PTuning("gpt2", n_prompt=rng.randint(2, 5), width=32, hidden=rng.choice((16, 24))),
        PTuning("gpt2", n_prompt=1, kind="LSTM", hidden=40),
    )


P_TUNING = Hidden("08-p-tuning", ptuning_cases)
