"""What cannot work ends in a message that names the argument or the line, and the next launch works."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

pytest.importorskip("triton", reason="Triton is not installed; the interpreter is its")

import triton
import triton.language as tl
from triton.runtime.errors import InterpreterError

from labkit import interpreter, track_traffic
from tests.kernels.add import add, add_kernel

interpreter.enable()


@pytest.fixture(autouse=True)
def the_next_launch_works() -> Iterator[None]:
    yield
    assert add(torch.ones(8), torch.ones(8)).tolist() == [2.0] * 8


def launch(**changed: object) -> None:
    x = torch.ones(8)
    add_kernel[(1,)](**{"x_ptr": x, "y_ptr": x, "out_ptr": torch.zeros(8), "n": 8, "BLOCK_SIZE": 8, **changed})


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.ones(8)


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"x_ptr": torch.ones(8, device="meta")}, ValueError, "argument x_ptr of kernel add_kernel is on device meta"),
        ({"x_ptr": fake()}, ValueError, "argument x_ptr of kernel add_kernel is a fake tensor, which holds no data"),
        ({"x_ptr": torch.eye(3).to_sparse()}, TypeError, "a tensor of layout torch.sparse_coo, which has no address"),
        ({"y_ptr": torch.ones(8).cfloat()}, TypeError, "a tensor of torch.complex64, a type that Triton does not have"),
        ({"y_ptr": [1.0, 2.0]}, TypeError, "argument y_ptr of kernel add_kernel is a list: a kernel is given tensors"),
        ({"y_ptr": np.ones(8)}, TypeError, "argument y_ptr of kernel add_kernel is a ndarray: a kernel is given"),
        ({"y_ptr": "x"}, TypeError, "is a str: a kernel is given tensors and numbers; any other choice is a parameter"),
        ({"n": np.int64(8)}, TypeError, "is a int64 of numpy's, which a GPU would not take: use n.item()"),
        ({"BLOCK_SIZE": torch.tensor(8)}, TypeError, "BLOCK_SIZE of kernel add_kernel is declared tl.constexpr, and"),
        ({"num_wraps": 8}, TypeError, "has no parameter num_wraps, nor is it an option of a launch such as num_warps"),
    ],
)
def test_what_no_kernel_can_be_given(changed: dict, error: type, text: str) -> None:
    with pytest.raises(error) as found:
        launch(**changed)
    assert text in str(found.value)


@pytest.mark.parametrize("changed", [{"n": np.float64(8)}, {"num_warps": 8, "num_stages": 1, "waves_per_eu": 2}])
def test_what_a_kernel_can_be_given(changed: dict) -> None:
    launch(**changed)


def test_a_parameter_that_was_forgotten() -> None:
    with pytest.raises(TypeError, match=r"add_kernel\(\) missing 1 required positional argument: 'BLOCK_SIZE'"):
        add_kernel[(1,)](torch.ones(8), torch.ones(8), torch.zeros(8), 8)


def test_a_grid_that_asks_for_what_is_not_there() -> None:
    with pytest.raises(ValueError) as found:
        add_kernel[lambda meta: (meta["BLOCK"],)](torch.ones(8), torch.ones(8), torch.zeros(8), 8, BLOCK_SIZE=8)
    assert str(found.value) == (
        "the grid of kernel add_kernel asks for meta['BLOCK'], and the kernel's parameters are x_ptr, y_ptr, out_ptr, "
        "n, BLOCK_SIZE"
    )


@triton.jit
def ragged_kernel(x_ptr, n: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, n), 1.0)


@triton.jit
def plain_size_kernel(x_ptr, n):
    tl.store(x_ptr + tl.arange(0, n), 1.0)


@triton.jit
def deciding_kernel(x_ptr, n: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, n))
    if x > 0:
        tl.store(x_ptr + tl.arange(0, n), -x)


@triton.jit
def joining_kernel(x_ptr, n: tl.constexpr):
    offs = tl.arange(0, n)
    tl.store(x_ptr + offs, 1.0, mask=(offs > 1) and (offs < 5))


@triton.jit
def optional_kernel(x_ptr, bias_ptr):
    tl.store(x_ptr, tl.load(bias_ptr))


NO_TRUTH = (
    "TypeError: a block of 8 values is neither true nor false: choose with tl.where(condition, x, y), and join masks "
    "with &, | and ~"
)


@pytest.mark.parametrize(
    ("kernel", "argument", "text"),
    [
        (ragged_kernel, 7, "ValueError: arange's range must be a power of 2"),
        (plain_size_kernel, 8, "ValueError: arange's arguments must be of type tl.constexpr"),
        (deciding_kernel, 8, NO_TRUTH),
        (joining_kernel, 8, NO_TRUTH),
        (
            optional_kernel,
            None,
            "AttributeError: 'NoneType' object has no attribute 'type' (None was given for bias_ptr)",
        ),
    ],
)
def test_a_kernel_that_would_not_compile(kernel, argument: object, text: str) -> None:
    with pytest.raises(InterpreterError) as found:
        kernel[(1,)](torch.zeros(8), argument)
    first, line = str(found.value).split("\n")
    assert first.startswith(f"kernel {kernel.__name__} failed in program (0, 0, 0), line ")
    assert first.endswith(f": {text}")
    assert line.strip() in inspect.getsource(kernel.fn)


def test_one_value_decides() -> None:
    @triton.jit
    def kernel(x_ptr, n: tl.constexpr):
        if tl.sum(tl.load(x_ptr + tl.arange(0, n)), axis=0) > 0 and n > 4:
            tl.store(x_ptr, -1.0)

    x = torch.ones(8)
    kernel[(1,)](x, 8)
    assert x[0] == -1


@triton.jit
def descend(x, depth: tl.constexpr):
    if depth == 0:
        return x + tl.arange(0, 3)
    return descend(x, depth - 1)


@triton.jit
def deep_kernel(x_ptr, depth: tl.constexpr):
    tl.store(x_ptr, descend(tl.load(x_ptr), depth))


def test_an_error_deep_inside_is_told_once() -> None:
    """Wrapped and quoted once for each call, as the stock interpreter does it, 30 calls take all memory there is."""
    with pytest.raises(InterpreterError) as found:
        deep_kernel[(1,)](torch.zeros(8), 10)
    assert str(found.value).endswith("ValueError: arange's range must be a power of 2\n    return x + tl.arange(0, 3)")
    told, longest = found.value, 0
    while told is not None:
        longest = max(longest, len(str(told)))
        told = told.__cause__ or told.__context__
    assert longest < 300


def test_a_function_that_calls_itself_for_ever() -> None:
    with pytest.raises(InterpreterError, match="RecursionError: maximum recursion depth exceeded"):
        deep_kernel[(1,)](torch.zeros(8), -1)


turns: list[int] = []


def interrupt_at_the_fifth_turn() -> None:
    turns.append(1)
    if len(turns) == 5:
        signal.raise_signal(signal.SIGINT)


@triton.jit
def endless_kernel(x_ptr):
    while tl.load(x_ptr) == 0:
        interrupt_at_the_fifth_turn()


@pytest.mark.parametrize("metered", [False, True])
def test_an_endless_kernel_can_be_interrupted(metered: bool) -> None:
    """As by a notebook's stop button, which sends this signal."""
    turns.clear()
    # Tests that were started in the background inherit a process that ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            if metered:
                with track_traffic():
                    endless_kernel[(1,)](torch.zeros(1))
            else:
                endless_kernel[(1,)](torch.zeros(1))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(turns) == 5
