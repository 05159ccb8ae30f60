"""A launch out of bounds, measured by nobody, ends in an exception and not in the end of the process."""

from __future__ import annotations

import importlib.util

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from triton.runtime import interpreter as triton_interpreter

from labkit import interpreter
from labkit.meters.traffic import LaunchOutOfBounds, guard_launches, track_traffic
from labkit.meters.traffic.guard import guarded
from tests.kernels.add import add, add_without_mask_kernel
from tests.kernels.faults import gather_kernel

interpreter.enable()


def test_a_launch_out_of_bounds() -> None:
    x = torch.arange(300.0)
    with guarded(triton_interpreter):
        with pytest.raises(LaunchOutOfBounds) as error:
            add(x, x, kernel=add_without_mask_kernel)
        assert torch.equal(add(x, x), 2 * x), "the next launch is as it should be"
    first, *_, last = str(error.value).splitlines()
    assert first == (
        "kernel add_without_mask_kernel, program (1, 0, 0): load of x_ptr[300], which has 300 elements, "
        "and 211 more lanes"
    )
    assert last == "Mask the lanes that have nothing to do: tl.load(..., mask=offs < n)"


def test_a_view_that_is_taken_for_contiguous() -> None:
    with guarded(triton_interpreter), pytest.raises(LaunchOutOfBounds) as error:
        gather_kernel[(1,)](torch.zeros(10, 3)[:, 1], torch.zeros(8), 1, 0, BLOCK_SIZE=8)
    assert str(error.value).splitlines() == [
        "kernel gather_kernel, program (0, 0, 0): load of x_ptr[1], which lies between the elements of a tensor of "
        "strides (3,), and 4 more lanes",
        "Give the kernel the tensor's strides and use them, or give it x.contiguous()",
    ]


def test_an_address_that_would_end_the_process() -> None:
    with guarded(triton_interpreter), pytest.raises(LaunchOutOfBounds):
        gather_kernel[(1,)](torch.zeros(8), torch.zeros(8), 2**20, 2**30, BLOCK_SIZE=8)


def test_a_meter_reports_and_nothing_is_raised() -> None:
    x = torch.ones(300)
    with guarded(triton_interpreter):
        with track_traffic() as traffic:
            add(x, x, kernel=add_without_mask_kernel)
        assert len(traffic.out_of_bounds) == 3
        with pytest.raises(LaunchOutOfBounds):
            add(x, x, kernel=add_without_mask_kernel)
    assert len(traffic.launches) == 1


def test_a_guard_inside_of_another() -> None:
    x = torch.ones(300)
    with guarded(triton_interpreter), guarded(triton_interpreter):
        with pytest.raises(LaunchOutOfBounds):
            add(x, x, kernel=add_without_mask_kernel)
        with track_traffic() as traffic:
            add(x, x, kernel=add_without_mask_kernel)
    assert traffic.out_of_bounds


def test_everything_is_given_back() -> None:
    before = triton_interpreter.GridExecutor.__call__, set(vars(triton_interpreter))
    with guarded(triton_interpreter):
        pass
    assert (triton_interpreter.GridExecutor.__call__, set(vars(triton_interpreter))) == before


def test_nothing_to_guard(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert guard_launches() is False
    monkeypatch.setattr("labkit.meters.traffic.guard.has_gpu", lambda: True)
    assert guard_launches() is False


def test_a_guard_that_would_end_with_a_meter_is_refused(monkeypatch) -> None:
    # An earlier check of this process may have set one for good.
    monkeypatch.delattr(triton_interpreter, "_labkit_guard", raising=False)
    with track_traffic(), pytest.raises(RuntimeError, match="call it before `track_traffic`"):
        guard_launches()


def test_for_the_rest_of_a_notebook() -> None:
    try:
        assert guard_launches()
        with track_traffic():
            assert guard_launches()
        with pytest.raises(LaunchOutOfBounds):
            add(torch.ones(300), torch.ones(300), kernel=add_without_mask_kernel)
    finally:
        guard = triton_interpreter._labkit_guard
        del triton_interpreter._labkit_guard
        guard.__exit__(None, None, None)
