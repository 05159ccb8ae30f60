"""Lab 02: hidden numbers to add. What tells the mistakes apart comes first, as in the public cases."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab02.sums import Numbers


def sums_cases(rng: random.Random) -> tuple[Numbers, ...]:
    return (
        Numbers("ones", rng.randint(1001, 1200)),
        Numbers("levels", 5),
        Numbers("huge", 4, "float64", value=float(rng.randint(2, 9))),
        Numbers("ones", rng.randint(800, 1200), "bfloat16"),
        Numbers("ones", 4, rng.choice(("float16", "bfloat16", "float32"))),
        Numbers("opposite", rng.randint(200, 400)),
        Numbers("cancelling", 2 * rng.randint(150, 300) + 1),
        Numbers("constant", 2 * rng.randint(300, 500) + 1, "float16", value=round(rng.uniform(0.005, 0.03), 4)),
        Numbers("constant", 2 * rng.randint(300, 500) + 1, "bfloat16", value=round(rng.uniform(0.005, 0.03), 4)),
        Numbers("constant", rng.choice((1, 2, 3)), "float32", value=0.1),
    )


SUMS = Hidden("02-sums", sums_cases)
