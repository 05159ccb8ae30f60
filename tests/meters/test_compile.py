"""What `track_compile` counts is what happened: graphs, breaks, frames, guards, calls; and nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from labkit import track_compile
from labkit.meters.compile import Break, Graph
from labkit.meters.compile.budget import count_compiles

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def twice(x):
    return 2 * x + 1


def branching(x):
    y = x * 2
    if y.sum() > 0:
        y = y + 1
    return y * 3


@torch.compiler.disable
def left_out(x):
    return x + 1


def test_one_graph_is_compiled_once_and_then_runs() -> None:
    with track_compile() as compiled:
        step = torch.compile(twice, backend="eager")
        results = [step(torch.full((3,), float(n))) for n in range(3)]
    assert [int(result[0]) for result in results] == [1, 3, 5]
    assert compiled.graphs == (Graph(("mul", "add"), n_inputs=1, call=0, runs=3),)
    assert compiled.calls == ("compiling", "compiled", "compiled")
    assert (compiled.breaks, compiled.frames, compiled.recompiles, compiled.operations) == ((), 1, (), 2)
    assert str(compiled).splitlines() == [
        "3 calls: 1 compiled something, 2 ran compiled, 0 ran eagerly",
        "1 graph with 2 operations, 0 breaks, 0 guard failures",
    ]


def test_a_break_is_told_with_its_reason_and_the_students_line() -> None:
    with track_compile() as compiled:
        torch.compile(branching, backend="eager")(torch.ones(3))
    (found,) = compiled.breaks
    assert found.reason == "a branch on the values of a tensor"
    assert found.where.endswith(": if y.sum() > 0:") and found.where.startswith("line ")
    assert (len(compiled.graphs), compiled.frames) == (2, 2)
    assert f"  break at {found.where}: {found.reason}" in str(compiled)


def test_a_function_that_is_disabled_breaks_the_graph() -> None:
    with track_compile() as compiled:
        torch.compile(lambda x: left_out(x * 2) * 3, backend="eager")(torch.ones(3))
    assert [one.reason for one in compiled.breaks] == ["Skip calling `torch.compiler.disable()`d function"]
    assert len(compiled.graphs) == 2 and compiled.calls == ("compiling",)


def test_a_function_that_is_given_up_is_a_lost_frame_and_an_eager_call() -> None:
    def caught(x):
        try:
            return x if x.sum().item() > 0 else -x
        except ValueError:
            return x

    with track_compile() as compiled:
        step = torch.compile(caught, backend="eager")
        for _ in range(2):
            step(torch.ones(3))
    (found,) = compiled.breaks
    assert found.frame_lost and "item()" in found.reason and "x.sum().item() > 0" in found.where
    assert compiled.calls == ("eager", "eager") and compiled.graphs == ()


def test_with_fullgraph_the_break_is_raised_and_told() -> None:
    with track_compile() as compiled, pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(branching, backend="eager", fullgraph=True)(torch.ones(3))
    assert len(compiled.breaks) == 1 and isinstance(compiled.breaks[0], Break)


@pytest.mark.parametrize(
    ("settings", "sizes", "frames"),
    [
        ({}, (2, 3, 5, 8, 9), 2),
        ({"dynamic": False}, (2, 3, 5, 8, 9), 5),
        ({"dynamic": True}, (2, 3, 5, 8, 9), 1),
        ({}, (2, 3, 5, 8, 9, 1), 3),
        ({"dynamic": False}, (2, 3, 5, 8, 9, 1), 6),
        ({"dynamic": True}, (2, 3, 5, 8, 9, 1), 2),
    ],
)
def test_frames_over_sizes(settings: dict, sizes: tuple[int, ...], frames: int) -> None:
    with track_compile() as compiled:
        step = torch.compile(twice, backend="eager", **settings)
        for size in sizes:
            step(torch.ones(size))
    assert compiled.frames == len(compiled.graphs) == frames
    assert len(compiled.recompiles) == frames - 1 and all(one.compiled for one in compiled.recompiles)
    assert compiled.calls.count("compiling") == frames and compiled.eager_calls == 0


class Numbered(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    @torch.compile(backend="eager")
    def forward(self, x):
        return x * self.number


def test_behind_the_limit_calls_run_eagerly() -> None:
    """24 layers that differ in an integer, three times over: 8 versions at most."""
    layers = [Numbered(number) for number in range(2, 26)]
    x = torch.ones(3)
    with track_compile() as compiled:
        for _ in range(3):
            for layer in layers:
                layer(x)
    assert len(compiled.calls) == 72 and compiled.eager_calls == 48
    assert (compiled.frames, compiled.calls.count("compiling")) == (8, 8)
    assert [one.compiled for one in compiled.recompiles] == [True] * 7 + [False]
    assert compiled.recompiles[0].function == "forward" and compiled.recompiles[0].guard == "self.number == 2"


def test_under_a_users_dispatch_mode_nothing_is_compiled() -> None:
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with track_compile() as compiled, Mode():
        torch.compile(twice, backend="eager")(torch.ones(3))
    assert compiled.calls == ("eager",) and compiled.graphs == ()


def test_the_rest_of_a_function_is_named_by_its_line() -> None:
    def counted(x, n):
        torch._dynamo.graph_break()
        return x * n

    with track_compile() as compiled:
        step = torch.compile(counted, backend="eager", dynamic=False)
        step(torch.ones(3), 2)
        step(torch.ones(4), 2)
    assert {one.function.split(" from")[0] for one in compiled.recompiles} == {"the rest of counted"}


def test_blocks_stand_one_in_another_and_leave_nothing_behind() -> None:
    from torch._dynamo import convert_frame, eval_frame
    from torch._dynamo.output_graph import OutputGraph
    from torch._inductor import compile_fx

    places = [
        (eval_frame, "_callback_from_stance"),
        (convert_frame, "_compile"),
        (convert_frame, "get_and_maybe_log_recompilation_reasons"),
        (OutputGraph, "compile_subgraph"),
        (OutputGraph, "call_user_compiler"),
        (compile_fx, "compile_fx"),
        (compile_fx, "min_cut_rematerialization_partition"),
    ]
    before = [getattr(home, name) for home, name in places]
    with track_compile() as outer:
        with track_compile() as inner:
            torch.compile(twice, backend="eager")(torch.ones(3))
        torch.compile(branching, backend="eager")(torch.ones(3))
    assert (len(inner.graphs), len(outer.graphs)) == (1, 3)
    assert [getattr(home, name) for home, name in places] == before


def test_a_name_that_pytorch_has_no_more_is_an_error_and_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a count that is silently 0 would pass a budget."""
    from torch._dynamo import convert_frame

    monkeypatch.delattr(convert_frame, "get_and_maybe_log_recompilation_reasons")
    with pytest.raises(AttributeError, match="get_and_maybe_log_recompilation_reasons"), track_compile():
        pass


def test_the_meter_adds_up_its_blocks_and_keeps_the_reasons() -> None:
    measured: dict[str, float] = {}
    held: dict = {}
    for function in (twice, branching):
        with count_compiles(measured, held):
            torch.compile(function, backend="eager")(torch.ones(3))
    assert measured == {"graphs": 3, "graph_breaks": 1, "frames": 3, "eager_calls": 0, "captured_operations": 7}
    assert held["graph_breaks"][0].endswith("a branch on the values of a tensor")
