"""solutions/kernels/softmax.py: values, gradients, bytes, what the compiler makes of it, what it refuses."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from solutions.kernels.softmax import softmax
from tests.reference.trial import (
    BFLOAT16,
    FLOAT32,
    agree,
    archs,
    compiled,
    draw,
    moved,
    near,
    places,
    traffic_of,
    types,
)


def exact(x):
    return x.softmax(-1)


@types
@places([(1, 1), (0, 8), (7, 100), (2, 3, 1024), (3, 5000)], [(4097, 1000), (4096, 8192), (64, 65536)])
def test_values_and_gradients(device, shape, kind) -> None:
    agree(softmax, exact, [draw(device, kind, *shape, scale=3.0)], kind)


@places([(4, 70)], [])
def test_large_numbers_and_what_is_masked_out(device, shape) -> None:
    x = draw(device, FLOAT32, *shape) + 300
    x[1, 3:] = -float("inf")
    x[2] = -float("inf")
    x[3, 0] = float("inf")
    near(softmax(x), exact(x.double()), FLOAT32)


@pytest.mark.parametrize("n_cols", [100, 1024, 4096])
def test_forward_moves_two_matrices_and_backward_three(n_cols) -> None:
    x = draw("cpu", BFLOAT16, 5, n_cols).requires_grad_()
    traffic = traffic_of(lambda: softmax(x).backward(x.detach()))
    one = x.nbytes
    assert moved(traffic, "softmax_kernel") == {"x_ptr": (one, 0), "out_ptr": (0, one)}
    assert moved(traffic, "softmax_backward_kernel") == {"dout_ptr": (one, 0), "out_ptr": (one, 0), "dx_ptr": (0, one)}


@pytest.mark.full("kernels")
@archs
@pytest.mark.parametrize("n_cols", [1024, 8192])
def test_each_access_has_sixteen_bytes(arch, n_cols) -> None:
    x = draw("cpu", BFLOAT16, 16, n_cols).requires_grad_()
    for report in compiled(lambda: softmax(x).backward(x.detach()), arch).values():
        assert set(report.loads) == set(report.stores) == {16}, str(report)


def test_rows_that_no_program_holds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rows of 65,537 numbers do not fit into one program, which holds 65,536"):
        softmax(torch.ones(1, 65537))
