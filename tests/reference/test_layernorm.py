"""solutions/kernels/layernorm.py: values, gradients, bytes, what the compiler makes of it, what it refuses."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from solutions.kernels.layernorm import layernorm
from tests.reference.trial import (
    BFLOAT16,
    FLOAT32,
    Type,
    agree,
    archs,
    compiled,
    draw,
    moved,
    places,
    traffic_of,
    types,
)


def exact(x, weight, bias):
    return F.layer_norm(x, weight.shape, weight, bias, 1e-5)


def inputs(device, kind, *shape):
    weight = 1 + draw(device, kind, shape[-1], seed=1, scale=0.3)
    return [draw(device, kind, *shape), weight, draw(device, kind, shape[-1], seed=2)]


@types
@places(
    [(1, 8), (0, 8), (19, 100)],
    [(4097, 1000), (8192, 4096), (256, 16384), (64, 32768)],
    slow=[(2, 3, 1024), (37, 300)],
)
def test_values_and_gradients(device, shape, kind) -> None:
    agree(layernorm, exact, inputs(device, kind, *shape), kind)


@places([(6, 100)], [])
def test_a_mean_far_from_zero_does_not_cancel(device, shape) -> None:
    x, weight, bias = inputs(device, FLOAT32, *shape)
    agree(layernorm, exact, [x + 3000, weight, bias], Type(torch.float32, 3e-4, 3e-4))


@pytest.mark.slow
def test_each_matrix_is_moved_once() -> None:
    x, weight, bias = (one.requires_grad_() for one in inputs("cpu", BFLOAT16, 40, 512))
    traffic = traffic_of(lambda: layernorm(x, weight, bias).backward(x.detach()))
    one = x.nbytes
    forward, backward = (moved(traffic, f"layernorm_{name}") for name in ("kernel", "backward_kernel"))
    assert (forward["x_ptr"], forward["out_ptr"]) == ((one, 0), (0, one))
    assert (backward["dout_ptr"], backward["x_ptr"], backward["dx_ptr"]) == ((one, 0), (one, 0), (0, one))
    # Both vectors' parts, each a row of float32 for each program, are read as often as they were written.
    parts = [backward[f"{name}_part_ptr"][1] for name in ("dweight", "dbias")]
    assert parts[0] == parts[1] and moved(traffic, "sum_partials_kernel")["part_ptr"] == (sum(parts), 0)


@pytest.mark.full("kernels")
@archs
@pytest.mark.parametrize("n_cols", [1024, 4096, 8192])
def test_accesses_are_wide(arch, n_cols) -> None:
    x, weight, bias = (one.requires_grad_() for one in inputs("cpu", BFLOAT16, 16, n_cols))
    reports = compiled(lambda: layernorm(x, weight, bias).backward(x.detach()), arch)
    for name in ("layernorm_kernel", "layernorm_backward_kernel"):
        assert reports[name].figures()["vector_width"] == 16, str(reports[name])


def test_vectors_that_do_not_fit_are_refused() -> None:
    x = torch.ones(2, 8)
    with pytest.raises(ValueError, match=r"rows of 8 numbers needs as many weights, not \(7,\)"):
        layernorm(x, torch.ones(7), torch.ones(7))
    with pytest.raises(ValueError, match=r"layernorm takes tensors of one shape.*bias \(9,\)"):
        layernorm(x, torch.ones(8), torch.ones(9))
