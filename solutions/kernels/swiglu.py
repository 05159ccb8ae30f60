"""SwiGLU's product, silu(gate) * up with silu(g) = g / (1 + exp(-g)), and its two gradients, a pass each.

Noam Shazeer, "GLU Variants Improve Transformer" (2020), equation 5, without its matrix products.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from solutions.kernels.launch import ELEMENTWISE, same_shape, size_class


@triton.autotune(ELEMENTWISE, key=["n_class"])
@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, n, n_class, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    offs = tl.arange(0, BLOCK)
    mask = offs < n - first
    gate = tl.load(gate_ptr + first + offs, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + first + offs, mask=mask).to(tl.float32)
    out = gate * tl.sigmoid(gate) * up
    tl.store(out_ptr + first + offs, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.autotune(ELEMENTWISE, key=["n_class"])
@triton.jit
def swiglu_backward_kernel(
    dout_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, n, n_class, BLOCK: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    offs = tl.arange(0, BLOCK)
    mask = offs < n - first
    dout = tl.load(dout_ptr + first + offs, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + first + offs, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + first + offs, mask=mask).to(tl.float32)
    part = tl.sigmoid(gate)
    silu = gate * part
    # silu'(g) = s + g s (1 - s)
    dgate = dout * up * (part + silu * (1 - part))
    tl.store(dgate_ptr + first + offs, dgate.to(dgate_ptr.dtype.element_ty), mask=mask)
    tl.store(dup_ptr + first + offs, (dout * silu).to(dup_ptr.dtype.element_ty), mask=mask)


def launch_swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """gate, up: contiguous, of one shape."""
    out = torch.empty_like(gate)
    n = gate.numel()
    if n:
        with torch.cuda.device_of(gate):
            swiglu_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](
                gate, up, out, n, n_class=size_class(n)
            )
    return out


def launch_swiglu_backward(dout: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of gate and up."""
    dgate, dup = torch.empty_like(gate), torch.empty_like(up)
    n = gate.numel()
    if n:
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
        with torch.cuda.device_of(gate):
            swiglu_backward_kernel[grid](dout, gate, up, dgate, dup, n, n_class=size_class(n))
    return dgate, dup


class SwiGLU(torch.autograd.Function):
    """Keeps its inputs for the backward pass, and nothing else: sigmoid is cheaper to compute than to load."""

    @staticmethod
    def forward(ctx, gate: Tensor, up: Tensor) -> Tensor:
        gate, up = gate.contiguous(), up.contiguous()
        ctx.save_for_backward(gate, up)
        return launch_swiglu(gate, up)

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple[Tensor, Tensor]:
        return launch_swiglu_backward(dout.contiguous(), *ctx.saved_tensors)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, in float32 inside. Raises ValueError where the two differ in shape, type or device."""
    same_shape("swiglu", gate=gate, up=up)
    return SwiGLU.apply(gate, up)
