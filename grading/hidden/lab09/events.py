"""Lab 09: hidden cases of jobs on several streams."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab09.events import Job, Jobs

KINDS = ("kernels", "to device", "to host")


def jobs_cases(rng: random.Random) -> tuple[Jobs, ...]:
    """Two of each kind first, so that each stream is both idle and busy when a job comes; then any.

    In the first case the copies to the device outlast all else, and the last job copies to the host: whoever waits for
    its stream alone asks too early, and whoever sets its stream and leaves it so shows.
    """
    twice = [Job(kind, rng.randint(1500, 3000), rng.randint(1, 3)) for kind in KINDS for _ in range(2)]
    twice[2] = Job("to device", rng.randint(40_000, 60_000))
    rng.shuffle(twice)
    twice.append(twice.pop(next(at for at, job in enumerate(twice) if job.kind == "to host")))
    some = [Job(rng.choice(KINDS), rng.randint(1000, 9000), rng.randint(1, 3)) for _ in range(rng.randint(5, 9))]
    # Beside the default stream there is always another.
    return Jobs(tuple(twice)), Jobs(
        (Job("to host", rng.randint(2000, 9000)), *some, Job("kernels", rng.randint(900, 9000)))
    )


EVENTS = Hidden("09-events", jobs_cases)
