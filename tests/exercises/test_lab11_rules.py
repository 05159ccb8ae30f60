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


@pytest.mark.parametrize("is_detached", [False, True])
def test_a_buffer_that_keeps_its_graph_is_compiled_again_and_holds_all_calls(is_detached: bool) -> None:
    """As the notebook says of the mean that the rewritten model keeps."""

    class Logging(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.register_buffer("mean", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.weight * x
            self.mean.copy_(y.mean().detach() if is_detached else y.mean())
            return y

    model, calls = Logging(), 4
    for _ in range(calls):
        model(torch.ones(3))
    depth, function = 0, model.mean.grad_fn
    while function is not None:
        depth, function = depth + 1, function.next_functions[0][0]
    assert depth == (0 if is_detached else calls)
    with fresh_compiler(), track_compile() as compiled:
        step = torch.compile(Logging(), backend="eager")
        for _ in range(calls):
            step(torch.ones(3))
    assert compiled.frames == (1 if is_detached else 2)


def test_a_float_of_a_layer_makes_two_versions_and_an_int_one_for_each_value() -> None:
    class Numbered(torch.nn.Module):
        def __init__(self, number: float) -> None:
            super().__init__()
            self.number = number

        @torch.compile(backend="eager")
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.tanh(x) / self.number

    def frames(kind: type) -> tuple[int, int]:
        layers = [Numbered(kind(number)) for number in range(2, 26)]
        with fresh_compiler(), track_compile() as compiled:
            for _ in range(3):
                for layer in layers:
                    layer(torch.ones(4))
        return compiled.frames, compiled.eager_calls

    assert frames(int) == (8, 48) and frames(float) == (2, 0)
