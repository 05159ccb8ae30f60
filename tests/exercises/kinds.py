"""Tiny exercises to try one kind of exercise each: declared in a line, with answers given as a cell's text."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.check.api import examine
from labkit.check.text import as_text
from labkit.check.verdict import Verdict
from labkit.spec import Answer, Case, Exercise, Oracle
from tests.exercises.small import cell


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
