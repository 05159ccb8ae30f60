"""What the oracles of lab 11 say of the compiler is what the compiler does."""

from __future__ import annotations

import pytest
import torch

from grading.hidden import hidden_of
from labkit import exercises, track_compile
from labkit.exercises.lab11.break_even import START, Costs, Log
from labkit.exercises.lab11.compiler import fresh_compiler
from labkit.oracles.lab11.break_even import totals_ms
from tests.exercises.harness import SECRET

pytestmark = [pytest.mark.slow, pytest.mark.lab("11")]


def processes(log: tuple[str | int, ...]) -> list[list[int]]:
    """The sizes of each process of a log."""
    found: list[list[int]] = []
    for event in log:
        if event == START:
            found.append([])
        elif isinstance(event, int):
            found[-1].append(event)
    return found


def test_calls_that_compile_are_those_that_dynamo_compiles() -> None:
    """Nothing costs anything but what is compiled, and no disk helps."""
    cases: list[Log] = [*exercises.find("11-break-even").public]
    cases += hidden_of("11-break-even").cases(SECRET.draw("11-break-even"))
    for sizes in {tuple(sizes) for case in cases for sizes in processes(case.log)}:
        totals = totals_ms((START, *sizes), Costs(0, 0, 1, 1))
        with fresh_compiler(), track_compile() as compiled:
            step = torch.compile(lambda x: 2 * x + 1, backend="eager")
            for size in sizes:
                step(torch.ones(size, 3))
        states = [state == "compiling" for state in compiled.calls]
        assert states == [after > before for before, after in zip([0, *totals], totals, strict=False)], sizes
