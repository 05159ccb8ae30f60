"""Lab 08, prompt tuning: hidden cases. What tells the mistakes apart comes first, as in the public ones."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab08.prompt_tuning import SoftPrompt


def prompt_cases(rng: random.Random) -> tuple[SoftPrompt, ...]:
    """gpt2 first: its positions are absolute. No padding first: there the loss follows from the logits."""
    return (
        SoftPrompt("gpt2", n_prompt=rng.randint(3, 6), length=rng.randint(6, 10)),
        SoftPrompt("gpt2", n_prompt=rng.randint(3, 6), length=rng.randint(6, 10), padding="right"),
        SoftPrompt("llama", n_prompt=rng.randint(2, 7), length=rng.randint(7, 12), padding="left", n_layers=3),
        SoftPrompt(
            "llama", n_prompt=1, batch=rng.randint(3, 5), length=rng.randint(6, 9), n_kv_heads=4, padding="right"
        ),
    )


PROMPT_TUNING = Hidden("08-prompt-tuning", prompt_cases)
