"""Blank stubs are told from answers, whatever they are wrapped in, without a call."""

from __future__ import annotations

import contextlib

import pytest
import torch

from grading.build.stub import CODE_STUB, CUDA_STUB
from labkit import each_written, written
from labkit.blanks import blank_met_by
from labkit.ranks import Comm, RankFailed, run_ranks, simulate
from labkit.simt import compile_cuda
from labkit.spec import STUB_MESSAGE

STUBS = f"""
def function(x):
    {CODE_STUB}

@contextlib.contextmanager
def context():
    {CODE_STUB}
    yield

class Method:
    def __init__(self):
        self.x = 1
    def get(self):
        {CODE_STUB}

class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {CODE_STUB}
"""


def named(source: str) -> dict:
    namespace = {"contextlib": contextlib, "torch": torch}
    exec(source, namespace)
    return {name: namespace[name] for name in ("function", "context", "Method", "Function")}


@pytest.mark.parametrize("name", ["function", "context", "Method", "Function"])
def test_a_stub_and_an_answer(name: str, capsys) -> None:
    assert not written(named(STUBS)[name])
    assert capsys.readouterr().out == f"Left out here: {name} is still blank.\n"
    assert written(named(STUBS.replace(CODE_STUB, "x = 1"))[name])
    assert capsys.readouterr().out == ""


def test_what_is_no_function_of_python_counts_as_written() -> None:
    assert written(torch.nn.Linear, torch.add, len)


def test_a_text_is_blank_where_its_stub_is() -> None:
    assert not written(f"def main():\n    {CODE_STUB}\n") and written("print(1)")


def test_a_blank_kernel_is_told_by_its_name() -> None:
    with pytest.raises(NotImplementedError) as caught:
        compile_cuda(f"__global__ void scale(float* x) {{\n{CUDA_STUB}\n}}")
    assert blank_met_by(caught.value) == "scale"


def blank_met(source: str, call: str) -> str | None:
    namespace = named(source) | {"simulate": simulate, "torch": torch}
    with pytest.raises(Exception) as caught:
        eval(call, namespace)
    return blank_met_by(caught.value)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("function(1)", "function"),
        ("max([1, 2], key=function)", "function"),
        ("Method().get()", "Method"),
        ("Function.apply(torch.ones(1))", "Function"),
        ("simulate(function, 2)", "function"),
    ],
)
def test_the_blank_answer_that_an_error_comes_from(call: str, name: str) -> None:
    assert blank_met(STUBS, call) == name


@pytest.mark.full("ranks")
def test_the_blank_answer_that_a_real_rank_met() -> None:
    def cell(comm: Comm) -> None:
        def answer(x: int) -> int:
            raise NotImplementedError(STUB_MESSAGE)

        answer(comm.rank)

    with pytest.raises(RankFailed) as caught:
        run_ranks(cell, 2, "gloo")
    assert blank_met_by(caught.value) == "answer"


def test_other_errors_come_from_no_blank_answer() -> None:
    assert blank_met(STUBS.replace(CODE_STUB, "1 / 0"), "simulate(function, 2)") is None
    assert blank_met(STUBS.replace(CODE_STUB, "raise NotImplementedError('no')"), "function(1)") is None


def test_calls_that_meet_something_blank_are_left_out(capsys) -> None:
    function = named(STUBS)["function"]
    calls = {"one": lambda: 1, "two": lambda: function(1), "three": lambda: missing}
    assert each_written(calls) == {"one": 1}
    assert capsys.readouterr().out == (
        "Left out here: two, because function is still blank.\n"
        "Left out here: three, because no cell has made missing yet.\n"
    )
    with pytest.raises(ZeroDivisionError):
        each_written({"four": lambda: 1 / 0})
