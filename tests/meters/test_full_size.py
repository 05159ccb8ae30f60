"""Launches at a size too large to run: written down as the launcher chooses them, compiled, never run."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it compiles the kernels")

import triton
import triton.language as tl

from labkit import interpreter
from labkit.meters.full_size import HostReadsTensor, forget_values, full_size_figures, without_data
from labkit.meters.launches import Pointer
from tests.kernels.softmax import softmax, softmax_kernel

interpreter.enable()


@triton.autotune(configs=[triton.Config({"BLOCK": 256}, num_warps=2), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 1.0, mask=at < n)


@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, n_inner, TILE: tl.constexpr, STEP: tl.constexpr):
    rows, steps = tl.arange(0, TILE), tl.arange(0, STEP)
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, n_inner, STEP):
        a = tl.load(a_ptr + rows[:, None] * n_inner + start + steps[None, :])
        b = tl.load(b_ptr + (start + steps)[:, None] * TILE + rows[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + rows[:, None] * TILE + rows[None, :], acc)


def test_nothing_is_run_and_nothing_is_allocated() -> None:
    with without_data() as launches:
        out = softmax(torch.empty(2**20, 2**17))
    (one,) = launches
    assert (one.function.__name__, one.grid) == ("softmax_kernel", (2**20,))
    assert one.arguments["BLOCK_SIZE"] == 2**17 and out.shape == (2**20, 2**17)
    assert one.arguments["x_ptr"] == Pointer(torch.float32, 0, 2**39)
    # Afterwards all is as it was.
    assert torch.allclose(softmax(torch.zeros(2, 4)), torch.full((2, 4), 0.25))


def test_a_pointer_knows_whether_its_address_is_aligned() -> None:
    with without_data() as launches:
        x = torch.empty(100)
        softmax_kernel[(1,)](x[1:], x, 8, 8, n_cols=8, BLOCK_SIZE=8)
    assert [launches[0].arguments[name].offset_bytes for name in ("out_ptr", "x_ptr")] == [4, 0]


def test_an_autotuned_kernel_takes_its_first_configuration() -> None:
    with without_data() as launches:
        x = torch.empty(2**30)
        tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, x.numel())
    assert [(one.grid, one.arguments["BLOCK"], one.options["num_warps"]) for one in launches] == [((2**22,), 256, 2)]


@pytest.mark.parametrize("read", [torch.Tensor.item, int, float, bool, torch.Tensor.tolist])
def test_a_host_that_reads_a_tensor_is_seen(read) -> None:
    with pytest.raises(HostReadsTensor, match="the host reads a number out of a tensor") as raised, without_data():
        read(torch.ones(4).sum())
    assert any(entry.name == "test_a_host_that_reads_a_tensor_is_seen" for entry in raised.traceback)


@pytest.mark.parametrize(
    "read", [lambda x: bool(x == 1), lambda x: torch.equal(x, torch.ones_like(x)), torch.Tensor.item]
)
def test_an_input_that_was_made_from_a_number_is_not_known_either(read) -> None:
    with without_data():
        assert read(torch.tensor(1.0)), "the control: PyTorch remembers it"
    with pytest.raises(HostReadsTensor), without_data():
        x = torch.tensor(1.0)
        forget_values({"inputs": [x]})
        read(x)


def test_a_grid_that_no_gpu_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="each axis has 0 to"), without_data():
        tuned_kernel[(1, 70_000)](torch.empty(4), 4)


@pytest.mark.slow
def test_a_step_as_long_as_the_inner_dimension_takes_more_shared_memory_than_there_is() -> None:
    figures = {}
    for step in (32, 1024, 4096):
        with without_data() as launches:
            a, b, out = torch.empty(64, 4096).half(), torch.empty(4096, 64).half(), torch.empty(64, 64)
            product_kernel[(1,)](a, b, out, 4096, TILE=64, STEP=step)
        figures[step] = full_size_figures(launches)
    assert figures[32]["shared_bytes"] < 2**16 and figures[32]["spills"] == 0
    assert figures[1024]["shared_bytes"] >= 2 * 64 * 1024 * 2
    # Compiling it would take minutes.
    assert figures[4096] == {"programs": 1, "most_programs": 1, "block_bytes": 64 * 4096 * 2}


@pytest.mark.slow
def test_programs_are_those_of_launches_on_large_tensors() -> None:
    with without_data() as launches:
        x, count = torch.empty(2**20), torch.empty(1)
        tuned_kernel[(1,)](count, 1)
        tuned_kernel[(2**12,)](x, 2**20)
        tuned_kernel[(2**14,)](count, 1)
    figures = full_size_figures(launches, archs=(80,))
    assert (figures["programs"], figures["most_programs"]) == (2**12, 2**14)
    names = ("programs", "most_programs", "block_bytes", "spills", "shared_bytes")
    assert full_size_figures([], archs=(80,)) == dict.fromkeys(names, 0)
