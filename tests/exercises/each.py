"""Tests that are run for each exercise, and which of them wait for a part of `make test-all`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from labkit import exercises

ALL = list(exercises.everything())
TAKE_THEIR_TIME = tuple(
    name
    for name in ALL
    if name in ("04-find-batch", "15-launch", "20-budget")
    or {"compiled", "compile", "kept"} & set(exercises.find(name).meters)
)
"""Exercises whose check compiles kernels or graphs, starts processes from nothing or trains until memory runs out,
which takes seconds each time.
"""
TAKE_A_SECOND = (
    *TAKE_THEIR_TIME,
    *("04-accumulate", "06-adafactor", "06-adam8bit", "06-adamw", "06-bf16-states", "06-foreach", "06-muon"),
    *("06-step-in-backward", "07-packing", "10-kernel-life-cycle", "11-backend", "11-trace-or-script", "15-ddp"),
    *("16-fsdp", "16-meta-init", "16-zero1", "16-zero2", "17-compose-bugs", "17-mend", "17-sequence-parallel"),
    *("17-tp-attention", "18-pipeline-step", "18-zero-bubble", "19-plan", "19-ring-attention", "20-flags"),
)
"""Those, and exercises whose solution and a wrong answer take a second of computing or most of one: they play many
steps, many of them on some ranks. Of these `make check` tries the blank cell.
"""
TRAIN = ("20-budget",)
"""Exercises whose solution is trained for some hundred steps, half a minute of work: in the part `answers` alone."""
TIMEOUT_S = 900
"""For all answers of one exercise, where others use the machine as well."""


def each_exercise(
    *of_all: pytest.MarkDecorator,
    of_slow: pytest.MarkDecorator | None = None,
    slow: Sequence[str] = (),
    trained: Sequence[str] = (),
):
    """Parametrize over the exercises, each with the mark of its lab; `of_slow` is for those that take their time.

    slow: those whose tests are marked so. trained: those whose tests run in the part `answers` alone.
    """

    def marks(name: str) -> list[pytest.MarkDecorator]:
        if name in trained:
            of_trained = [pytest.mark.full("answers"), pytest.mark.later, pytest.mark.timeout(TIMEOUT_S)]
            return [pytest.mark.lab(name[:2]), *of_trained]
        more = [of_slow] if of_slow and name in TAKE_THEIR_TIME else [pytest.mark.slow] if name in slow else []
        return [pytest.mark.lab(name[:2]), *of_all, *more]

    return pytest.mark.parametrize("exercise_id", [pytest.param(name, marks=marks(name)) for name in ALL])


in_full = each_exercise(pytest.mark.full("answers"), pytest.mark.timeout(TIMEOUT_S), of_slow=pytest.mark.later)
