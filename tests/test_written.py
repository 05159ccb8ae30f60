"""Blank stubs are told from answers, whatever they are wrapped in, without a call."""

from __future__ import annotations

import contextlib

import pytest
import torch

from grading.build.stub import CODE_STUB
from labkit import written

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
