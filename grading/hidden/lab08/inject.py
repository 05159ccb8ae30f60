"""Lab 08, adapters in a model: hidden cases. T5's short names tell a careless match apart."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab08.inject import Adapted

_LLAMA = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def adapted_cases(rng: random.Random) -> tuple[Adapted, ...]:
    return (
        Adapted("llama", tuple(rng.sample(_LLAMA, 2)), n_layers=rng.randint(2, 3)),
        Adapted("t5", (rng.choice(("q", "k", "v")), "o"), n_layers=rng.randint(1, 2), width=24),
        Adapted("llama", (rng.choice(_LLAMA), "lm_head"), n_layers=1, width=24),
        Adapted("t5", (rng.choice(_LLAMA),), n_layers=1, none=True),
    )


INJECT = Hidden("08-inject", adapted_cases)
