"""Lab 10: hidden forms and chips."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.function_calls import Call

CHIPS = ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0))
NAMES = tuple(f"{kind}_{major}{minor}" for kind in ("sm", "compute") for major, minor in CHIPS)
FIXED = (
    Call("image_for", (("sm_86", "compute_80", "sm_80"), (8, 9))),
    Call("image_for", (("sm_103", "compute_90"), (10, 0))),
    Call("image_for", (("sm_80", "compute_120"), (10, 0))),
    Call("image_for", (("compute_80", "sm_100a", "compute_100a"), (12, 0))),
    Call("image_for", (("sm_103a", "compute_100a", "sm_100"), (10, 3))),
    Call("image_for", (("compute_100a", "compute_90", "sm_100a"), (10, 3))),
    Call("image_for", (("sm_80", "compute_86"), (8, 9))),
    Call("image_for", (("sm_80",), (8, 6))),
    Call("image_for", (("sm_89", "compute_80"), (8, 0))),
    Call("image_for", (("compute_80", "compute_90"), (12, 0))),
    Call("image_for", (("compute_80", "sm_100"), (10, 3))),
    Call("image_for", (("compute_89", "compute_100"), (10, 3))),
)


def forms(rng: random.Random) -> tuple[Call, ...]:
    """One case for each rule, and some drawn at random."""
    drawn = [Call("image_for", (tuple(rng.sample(NAMES, rng.randint(2, 5))), rng.choice(CHIPS))) for _ in range(10)]
    return (*FIXED, *drawn)


IMAGE = Hidden("10-image", forms)
