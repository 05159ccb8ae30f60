"""Lab 98 on a forking process, and submissions to it: what the tests on routed ranks have in common."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grading.isolation.probe import try_tier
from grading.supervisor import Forkserver, Job, SubmissionResult, grade_job
from grading.worker.confine.plan import PLAIN, Limits
from tests.grading.lab98 import exercises

HALVES = {"labkit.exercises.lab98": "exercises", "labkit.oracles.lab98": "oracles", "grading.hidden.lab98": "hidden"}
PRELOAD = ("torch", "grading.worker.job")


@contextmanager
def lab98() -> Iterator[None]:
    """Lab 98 in every registry, as it was before afterwards."""
    before = {registered: sys.modules.get(registered) for registered in HALVES}
    for registered, name in HALVES.items():
        sys.modules[registered] = importlib.import_module(f"tests.grading.lab98.{name}")
    try:
        yield
    finally:
        for registered, module in before.items():
            sys.modules.pop(registered)
            if module is not None:
                sys.modules[registered] = module


@contextmanager
def ranks_server(tier: str | None = None, limits: Limits = PLAIN) -> Iterator[Forkserver]:
    """A forking process of this tier, or of the strongest that is not slow to start, that knows lab 98."""
    best = "kernel" if try_tier("kernel").works else "none"
    tier = tier or os.environ.get("LABS_ISOLATION", best)
    with lab98(), Forkserver(tier, preload=PRELOAD, limits=limits) as server:
        shutil.copy(exercises.__file__, Path(server.tree) / "labkit" / "exercises" / "lab98.py")
        yield server


def graded(server: Forkserver, *cells: str, name: str = "98-sum") -> SubmissionResult:
    """A submission of these cells, the last of which has the answer."""
    *before, answer = cells
    steps = [{"id": f"c{at}", "do": "code", "source": source} for at, source in enumerate(before)]
    steps += [{"id": name, "do": "code", "source": answer}]
    steps += [{"id": f"{name}-check", "do": "exercise", "exercise": name, "texts": {}}]
    return grade_job(server, Job("98_test", "ada", "1", tuple(steps), cells, (), b"key"))
