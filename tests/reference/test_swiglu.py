"""solutions/kernels/swiglu.py: values, gradients, bytes, what the compiler makes of it, what it refuses."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from solutions.kernels.swiglu import swiglu
from tests.reference.trial import BFLOAT16, agree, archs, compiled, draw, moved, places, traffic_of, types


def exact(gate, up):
    return F.silu(gate) * up


@types
@places([(1,), (0,), (3, 700), (2, 1, 5000)], [(4096, 14336), (1_000_003,)])
def test_values_and_gradients(device, shape, kind) -> None:
    # Gates from -60 to 60: exp overflows in neither direction.
    tensors = [draw(device, kind, *shape, scale=15.0), draw(device, kind, *shape, seed=1)]
    agree(swiglu, exact, tensors, kind)


def test_forward_moves_three_matrices_and_backward_five() -> None:
    gate, up = (draw("cpu", BFLOAT16, 9, 777, seed=seed).requires_grad_() for seed in (0, 1))
    one = gate.nbytes
    traffic = traffic_of(lambda: swiglu(gate, up).backward(gate.detach()))
    assert moved(traffic, "swiglu_kernel") == {"gate_ptr": (one, 0), "up_ptr": (one, 0), "out_ptr": (0, one)}
    assert moved(traffic, "swiglu_backward_kernel") == {
        **{f"{name}_ptr": (one, 0) for name in ("dout", "gate", "up")},
        **{f"{name}_ptr": (0, one) for name in ("dgate", "dup")},
    }


@pytest.mark.full("kernels")
@archs
def test_each_access_has_sixteen_bytes(arch) -> None:
    gate, up = (draw("cpu", BFLOAT16, 8192, seed=seed).requires_grad_() for seed in (0, 1))
    for report in compiled(lambda: swiglu(gate, up).backward(gate.detach()), arch).values():
        assert set(report.loads) == set(report.stores) == {16}, str(report)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r"swiglu takes tensors of one shape.*gate \(4,\).*up \(3,\)"):
        swiglu(torch.ones(4), torch.ones(3))
