"""Labs 96 and 98 on a forking process, and submissions to them: what the tests on stores and routed ranks share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from grading.isolation import Tier
from grading.isolation.plan import FULL
from grading.isolation.probe import try_tier
from grading.isolation.tiers import KERNEL, NONE, tier_named
from grading.supervisor import Job, Sandbox, SubmissionResult, grade_job
from grading.worker.confine.plan import PLAIN, Limits
from grading.worker.protocol.steps import RunCode, ServeExercise
from tests.grading.fake_labs import registered, tree_with_fake_labs
from tests.grading.shared_sandboxes import shared_sandbox


@contextmanager
def ranks_server(tier: Tier | None = None, limits: Limits = PLAIN) -> Iterator[Sandbox]:
    """A forking process of this tier, or of the strongest that is not slow to start, that knows the labs."""
    best = KERNEL if try_tier(KERNEL).works else NONE
    tier = tier or tier_named(os.environ.get("LABS_ISOLATION", best.name))
    with registered("96"), registered("98"):
        if limits == PLAIN:
            yield shared_sandbox(tier)
        else:
            with Sandbox(tier, tree_with_fake_labs(), preload=FULL, limits=limits) as server:
                yield server


def graded(server: Sandbox, *cells: str, name: str = "98-sum") -> SubmissionResult:
    """A submission of these cells, the last of which has the answer."""
    *before, answer = cells
    steps = [RunCode(f"c{at}", source) for at, source in enumerate(before)]
    steps += [RunCode(name, answer)]
    steps += [ServeExercise(f"{name}-check", name)]
    return grade_job(server, Job(f"{name[:2]}_test", "ada", "1", tuple(steps), cells, (), b"key"))
