"""Lab 01: hidden recipes and optimizers."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.model_state_bytes import OPTIMIZERS, RECIPES, States


def states(rng: random.Random) -> tuple[States, ...]:
    """Every recipe and every optimizer, paired by chance after the pairs that part the mistakes."""
    width = rng.randint(30, 60)
    text = ((rng.randint(200, 400), width), (width, 2 * width), (2 * width, width), (width,))
    image = ((rng.randint(12, 20), rng.randint(5, 9), 3, 3), (rng.randint(8, 20),), (7, rng.randint(20, 40)))
    return (
        *(States(recipe, "adamw", text) for recipe in ("fp32", "fp16_master", "huggingface", "bf16", "amp")),
        # States of 4 bytes, so that two numbers an element are not one of twice the bytes.
        *(States(rng.choice(RECIPES[:-1]), optimizer, text) for optimizer in OPTIMIZERS),
        States("bf16", "momentum", text),
        States("bf16", "adafactor", image),
        States("bf16", "adafactor_momentum", image),
        States("fp16_master", "adafactor", image),
        States("bf16", "adam8bit", image),
    )


MODEL_STATE_BYTES = Hidden("01-model-state-bytes", states)
