"""Lab 20: what is asked, given and run for the training script: billed at a billion parameters, trained at a tiny size.

The answer is the text of its cell. No cell runs in its job, and the text is a language without a way to the meter
(`labkit.capstone.allowed`): so what is counted is no claim of the student's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.capstone.play import play
from labkit.spec import Answer, Case, Exercise, Run


@dataclass(frozen=True)
class Try(Case):
    """A bill, and a training on each of so many languages."""

    n_seeds: int = 1


def draw(case: Try, gen: torch.Generator) -> dict[str, Any]:
    """seeds: of the languages, no two alike. secret: of the size between the tiny one and the billion."""
    first, secret = torch.randint(2**40, (2,), generator=gen).tolist()
    return {"seeds": [first + 1009 * n for n in range(case.n_seeds)], "secret": secret}


BUDGET = Exercise(
    id="20-budget",
    title="A billion parameters in 8 GB",
    points=6,
    minutes=60,
    difficulty=3,
    answers=(Answer("STEPS", kind="text"),),
    public=(Try(),),
    inputs=draw,
    drive=lambda ans, case, tree, stage: play(ans.STEPS, tree["seeds"], tree["secret"]),
    run=Run(cells=False, wall_s=280.0),
)
