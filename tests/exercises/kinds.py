"""Tiny exercises to try one kind of exercise each: declared in a line, with answers given as a cell's text."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.check.api import examine
from labkit.check.text import as_text
from labkit.check.verdict import Verdict
from labkit.spec import Answer, Case, Exercise, Oracle
from tests.exercises.small import cell

RING = """def all_reduce(comm, x):
    rank, n = comm.rank, comm.world_size
    parts = [part.clone() for part in x.tensor_split(n)]
    for step in range(2 * n - 2):
        adds = step < n - 1
        mine = parts[(rank - step - 1) % n]
        got = torch.empty_like(mine)
        work = comm.isend(parts[(rank - step) % n], (rank + 1) % n)
        comm.recv(got, (rank - 1) % n)
        work.wait()
        mine.copy_(mine + got if adds else got)
    return torch.cat(parts)
"""
"""An all-reduce around a ring of ranks, in 2 (n - 1) rounds."""


@dataclass(frozen=True)
class Size(Case):
    n: int = 4
    seed: int = 0


def declare(slug: str, answer: Answer, drive, cases: tuple[Case, ...] = (Size(),), inputs=None, **rest) -> Exercise:
    return Exercise(
        id=f"91-{slug}",
        title=slug,
        points=1,
        minutes=1,
        difficulty=1,
        answers=(answer,),
        public=cases,
        inputs=inputs or (lambda case, gen: {"x": torch.randn(case.n, generator=gen)}),
        drive=drive,
        **rest,
    )


def run(exercise: Exercise, oracle: Oracle, source: str) -> Verdict:
    return examine(exercise, oracle, cell(source), [source])


def passes(exercise: Exercise, oracle: Oracle, source: str) -> None:
    verdict = run(exercise, oracle, source)
    assert verdict.passed, as_text(verdict)


def fails(exercise: Exercise, oracle: Oracle, source: str, *parts: str) -> None:
    verdict = run(exercise, oracle, source)
    text = as_text(verdict)
    assert verdict.score == 0, text
    for part in parts:
        assert part in text, text
