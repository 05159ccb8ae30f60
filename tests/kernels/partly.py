"""Kernels of which a part never runs, or hardly ever, and looks better compiled than what does."""

import triton
import triton.language as tl


@triton.jit
def moved(from_ptr, to_ptr, offs):
    tl.store(to_ptr + offs, tl.load(from_ptr + offs))


@triton.jit
def copy_kernel(x_ptr, out_ptr, least, BLOCK: tl.constexpr):
    """Programs from `least` on move 1024 numbers, by wide accesses; those before it move BLOCK."""
    program = tl.program_id(0)
    if program >= least:
        moved(x_ptr, out_ptr, program * BLOCK + tl.arange(0, 1024))
    else:
        moved(x_ptr, out_ptr, program * BLOCK + tl.arange(0, BLOCK))


@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, n_on_units, N: tl.constexpr):
    """Programs before `n_on_units` multiply on the tensor cores, the others do not."""
    here = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + here), tl.load(b_ptr + here)
    if tl.program_id(0) < n_on_units:
        product = tl.dot(a, b)
    else:
        product = tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    tl.store(out_ptr + tl.program_id(0) * N * N + here, product)
