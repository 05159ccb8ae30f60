"""out = x + y, element by element. Memory-bound: two reads and a write for each element, 3 * n * itemsize bytes."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from solutions.kernels.launch import ELEMENTWISE, same_shape, size_class


@triton.autotune(ELEMENTWISE, key=["n_class"])
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, n_class, BLOCK: tl.constexpr):
    # 64 bits for the place of the block, 32 for the lanes in it: what is left over is known to be aligned.
    first = tl.program_id(0).to(tl.int64) * BLOCK
    offs = tl.arange(0, BLOCK)
    mask = offs < n - first
    x = tl.load(x_ptr + first + offs, mask=mask)
    y = tl.load(y_ptr + first + offs, mask=mask)
    tl.store(out_ptr + first + offs, x + y, mask=mask)


def launch_add(x: Tensor, y: Tensor) -> Tensor:
    """x, y: contiguous, of one shape."""
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        with torch.cuda.device_of(x):
            add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](
                x, y, out, n, n_class=size_class(n)
            )
    return out


class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, y: Tensor) -> Tensor:
        return launch_add(x.contiguous(), y.contiguous())

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple[Tensor, Tensor]:
        return dout, dout


def add(x: Tensor, y: Tensor) -> Tensor:
    """x + y for two tensors of one shape. Raises ValueError where they differ in shape, type or device."""
    same_shape("add", x=x, y=y)
    return Add.apply(x, y)
