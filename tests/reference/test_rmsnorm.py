"""solutions/kernels/rmsnorm.py: values, gradients, bytes, what the compiler makes of it, what it refuses."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from solutions.kernels.launch import INTERPRETED_PROCESSORS
from solutions.kernels.rmsnorm import rmsnorm, rmsnorm_backward_kernel
from tests.reference.trial import BFLOAT16, agree, archs, compiled, draw, moved, places, traffic_of, types

EPS = 1e-6


def exact(x, weight):
    return F.rms_norm(x, weight.shape, weight, EPS)


def inputs(device, kind, *shape):
    return [draw(device, kind, *shape), 1 + draw(device, kind, shape[-1], seed=1, scale=0.3)]


@types
@places(
    [(1, 1), (0, 8), (19, 100)],
    [(4097, 1000), (8192, 4096), (256, 16384), (64, 32768)],
    slow=[(2, 3, 1024), (37, 300)],
)
def test_values_and_gradients(device, shape, kind) -> None:
    agree(lambda x, weight: rmsnorm(x, weight, EPS), exact, inputs(device, kind, *shape), kind)


def test_the_weights_gradient_is_the_same_at_every_run() -> None:
    x, weight = (one.requires_grad_() for one in inputs("cpu", BFLOAT16, 50, 64))
    runs = [torch.autograd.grad(rmsnorm(x, weight).sum(), weight)[0] for _ in range(2)]
    assert torch.equal(*runs)


def test_each_matrix_is_moved_once_and_the_weights_gradient_costs_a_row_for_each_program() -> None:
    x, weight = (one.requires_grad_() for one in inputs("cpu", BFLOAT16, 40, 512))
    traffic = traffic_of(lambda: rmsnorm(x, weight).backward(x.detach()))
    one, rows = x.nbytes, 4 * len(x)
    forward = moved(traffic, "rmsnorm_kernel")
    assert forward.pop("weight_ptr")[0] % weight.nbytes == 0
    assert forward == {"x_ptr": (one, 0), "out_ptr": (0, one), "rstd_ptr": (0, rows)}
    n_programs = INTERPRETED_PROCESSORS * rmsnorm_backward_kernel.best_config.kwargs["PER_PROCESSOR"]
    partials = n_programs * 4 * weight.numel()
    backward = moved(traffic, "rmsnorm_backward_kernel")
    assert backward == {
        "dout_ptr": (one, 0),
        "x_ptr": (one, 0),
        "weight_ptr": (n_programs * weight.nbytes, 0),
        "rstd_ptr": (rows, 0),
        "dx_ptr": (0, one),
        "part_ptr": (0, partials),
    }
    assert moved(traffic, "sum_partials_kernel") == {"part_ptr": (partials, 0), "out_ptr": (0, weight.nbytes)}


@pytest.mark.full("kernels")
@archs
@pytest.mark.parametrize("n_cols", [1024, 4096, 8192])
def test_accesses_are_wide(arch, n_cols) -> None:
    x, weight = (one.requires_grad_() for one in inputs("cpu", BFLOAT16, 16, n_cols))
    reports = compiled(lambda: rmsnorm(x, weight).backward(x.detach()), arch)
    for name in ("rmsnorm_kernel", "rmsnorm_backward_kernel"):
        assert reports[name].figures()["vector_width"] == 16, str(reports[name])
    assert reports["sum_partials_kernel"].load_width_bytes == 16


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rows of 8 numbers needs as many weights, not \(7,\)"):
        rmsnorm(torch.ones(2, 8), torch.ones(7))
