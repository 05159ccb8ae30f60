"""Launches: what is said of a wrong one, kernels made for a GPU, and meters that see nothing of the interpreter."""

from __future__ import annotations

import warnings

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; the interpreter is its")

import triton
import triton.language as tl
from triton.runtime.errors import InterpreterError
from triton.runtime.jit import JITFunction

from labkit import interpreter, track_memory, track_ops, track_traffic
from labkit.limits import OverLimit, time_limit
from tests.kernels.add import add, add_kernel
from tests.kernels.softmax import softmax, softmax_kernel

interpreter.enable()


@triton.jit
def failing_kernel(x_ptr, n: tl.constexpr):
    row = tl.program_id(0)
    if row == 2:
        x = tl.load(x_ptr + tl.arange(0, n))
        y = x + tl.arange(0, 2 * n)
        tl.store(x_ptr, y)


@triton.jit
def endless_kernel(x_ptr):
    while tl.load(x_ptr) == 0:
        tl.store(x_ptr, 0.0)


def launch_add(grid: object, x: torch.Tensor | None = None) -> torch.Tensor:
    x = torch.ones(8) if x is None else x
    out = torch.zeros(8)
    add_kernel[grid](x, x, out, 8, BLOCK_SIZE=8)
    return out


@pytest.mark.parametrize(
    ("grid", "text"),
    [
        (4, "the grid of kernel add_kernel must be a tuple of 1 to 3 integers, not 4"),
        ((), "the grid of kernel add_kernel must be a tuple of 1 to 3 integers, not ()"),
        ((1, 1, 1, 1), "the grid of kernel add_kernel must be a tuple of 1 to 3 integers, not (1, 1, 1, 1)"),
        (
            (8 / 8,),
            "the grid of kernel add_kernel must be of integers, not (1.0,); triton.cdiv(n, BLOCK_SIZE) rounds up",
        ),
        ((-1,), "the grid of kernel add_kernel is (-1,); each axis has 0 to (2147483647,)"),
        ((1, 70000), "the grid of kernel add_kernel is (1, 70000); each axis has 0 to (2147483647, 65535)"),
    ],
)
def test_a_wrong_grid(grid: object, text: str) -> None:
    for value in (grid, lambda meta: grid):
        with pytest.raises(ValueError) as error:
            launch_add(value)
        assert str(error.value) == text


def test_no_grid_at_all() -> None:
    with pytest.raises(RuntimeError) as error:
        add_kernel(torch.ones(8), torch.ones(8), torch.ones(8), 8, BLOCK_SIZE=8)
    assert str(error.value) == "add_kernel is a Triton kernel and was called without a grid: add_kernel[grid](...)"


def test_a_grid_of_no_programs_runs_none() -> None:
    assert launch_add((0,)).tolist() == [0.0] * 8


def test_zero_sizes_and_strides_are_no_trouble() -> None:
    assert add(torch.ones(0), torch.ones(0)).shape == (0,)
    x = torch.randn(64, 5, generator=torch.Generator().manual_seed(0)).t()
    out = torch.empty(5, 64)
    softmax_kernel[(5,)](out, x.contiguous(), 64, 64, 64, BLOCK_SIZE=64)
    torch.testing.assert_close(out, torch.softmax(x, -1))


def test_a_tensor_without_data() -> None:
    with pytest.raises(ValueError) as error:
        launch_add((1,), torch.ones(8, device="meta"))
    assert str(error.value) == (
        "argument x_ptr of kernel add_kernel is on device meta, which holds no data to load: "
        "give it a tensor on the CPU"
    )


def test_a_failing_kernel_names_its_program_and_line() -> None:
    with pytest.raises(InterpreterError) as error:
        failing_kernel[(4,)](torch.ones(8), 4)
    first, second = str(error.value).splitlines()[:2]
    assert first.startswith("kernel failing_kernel failed in program (2, 0, 0), line ")
    assert ": ValueError: Cannot make_shape_compatible" in first
    assert second == "    y = x + tl.arange(0, 2 * n)"
    # The language is given back, and the next launch works.
    assert launch_add((1,)).tolist() == [2.0] * 8


def test_an_endless_kernel_is_ended_by_a_limit() -> None:
    with pytest.raises(OverLimit), time_limit(wall_s=0.2):
        endless_kernel[(1,)](torch.zeros(1))
    assert launch_add((1,)).tolist() == [2.0] * 8


def test_no_warning_of_infinities() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        softmax(torch.tensor([[float("inf"), 1.0], [1e38, -1e38], [float("nan"), 0.0]]))


def test_kernels_made_for_the_compiler_run_as_well() -> None:
    """What a notebook has that imported Triton, and defined kernels, before the interpreter was switched on."""
    x = torch.randn(4, 100, generator=torch.Generator().manual_seed(1))
    out = torch.empty_like(x)
    compiled = JITFunction(softmax_kernel.fn)
    compiled[(4,)](out, x, 100, 100, 100, BLOCK_SIZE=128)
    assert torch.equal(out, softmax(x))


def test_meters_do_not_see_the_interpreter() -> None:
    x = torch.ones(1024, dtype=torch.bfloat16)
    with track_ops() as ops:
        add(x, x)
    assert set(ops.count_by_op) == {"empty_like"}
    with track_memory(batch=[x]) as profile:
        add(x, x)
    assert profile.peak_bytes == 2 * 2048, "the argument and the result"


@triton.autotune([triton.Config({"BLOCK_SIZE": size}) for size in (64, 16)], key=["n"], reset_to_zero=["out_ptr"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK_SIZE"] == 0})
@triton.jit
def tuned_sum_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs) if EVEN else tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


def tuned_sum(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1)
    tuned_sum_kernel[lambda meta: (triton.cdiv(len(x), meta["BLOCK_SIZE"]),)](x, out, len(x))
    return out


@pytest.mark.parametrize("n", [128, 100])
def test_a_launch_that_tunes_is_measured_as_one_that_does_not(n: int) -> None:
    measured = []
    for _ in range(2):
        with track_traffic() as traffic:
            assert tuned_sum(torch.ones(n)).item() == n
        measured.append(str(traffic))
        assert [launch.grid for launch in traffic.launches] == [(2, 1, 1)] and not traffic.out_of_bounds
    assert measured[0] == measured[1]
