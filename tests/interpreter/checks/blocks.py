"""What makes one number of many: reductions, products of matrices, atomic additions."""

import torch
import triton
import triton.language as tl

from tests.interpreter.checks.common import NARROW, check, same


@triton.jit
def reduce_kernel(x_ptr, sum_ptr, max_ptr, arg_ptr, run_ptr, n_cols: tl.constexpr):
    offs = tl.program_id(0) * n_cols + tl.arange(0, n_cols)
    x = tl.load(x_ptr + offs)
    row = tl.program_id(0)
    tl.store(sum_ptr + row, tl.sum(x, axis=0))
    tl.store(max_ptr + row, tl.max(x, axis=0))
    tl.store(arg_ptr + row, tl.argmax(x, axis=0))
    tl.store(run_ptr + offs, tl.cumsum(x, axis=0))


@check
def bf16_reductions():
    # Small integers: every order of summation is exact in float32, and only the last rounding remains.
    x = torch.randint(-99, 100, (6, 128), generator=torch.Generator().manual_seed(4)).bfloat16()
    total, top = torch.zeros(6, dtype=x.dtype), torch.zeros(6, dtype=x.dtype)
    at, run = torch.zeros(6, dtype=torch.int32), torch.zeros_like(x)
    reduce_kernel[(6,)](x, total, top, at, run, 128)
    same(total, x.sum(1))
    same(top, x.amax(1))
    assert torch.equal(x.gather(1, at[:, None].long())[:, 0], x.amax(1))
    same(run, x.float().cumsum(1).bfloat16())


@triton.jit
def dot_kernel(a_ptr, b_ptr, out_ptr, n: tl.constexpr, PRECISION: tl.constexpr):
    offs = tl.arange(0, n)[:, None] * n + tl.arange(0, n)[None, :]
    c = tl.dot(tl.load(a_ptr + offs), tl.load(b_ptr + offs), input_precision=PRECISION)
    tl.store(out_ptr + offs, c)


def dot(a, b, precision="ieee"):
    out = torch.zeros(a.shape)
    dot_kernel[(1,)](a, b, out, len(a), precision)
    return out


@check
def products_of_narrow_matrices():
    for dtype in (*NARROW, torch.float16):
        gen = torch.Generator().manual_seed(5)
        a, b = (torch.randint(-8, 9, (32, 32), generator=gen).to(dtype) for _ in range(2))
        assert torch.equal(dot(a, b), a.float() @ b.float()), dtype


@check
def tf32_products_lose_the_low_bits():
    a = torch.eye(16) * (1 + 2.0**-12)
    assert torch.equal(dot(a, torch.eye(16)), a)
    assert torch.equal(dot(a, torch.eye(16), "tf32"), torch.eye(16))


@check
def atomic_addition_in_bf16():
    @triton.jit
    def kernel(out_ptr, n: tl.constexpr):
        offs = tl.arange(0, n)
        tl.atomic_add(out_ptr + offs % 4, offs.to(tl.bfloat16), mask=offs < n - 1)

    out = torch.zeros(4, dtype=torch.bfloat16)
    kernel[(2,)](out, 16)
    same(out, 2 * torch.tensor([24.0, 28.0, 32.0, 21.0]).bfloat16())


@triton.jit
def _merge(top, total, other_top, other_total):
    new = tl.maximum(top, other_top)
    return new, total * tl.exp(top - new) + other_total * tl.exp(other_top - new)


@check
def custom_reductions_are_trees():
    @triton.jit
    def kernel(x_ptr, out_ptr, n: tl.constexpr):
        x = tl.load(x_ptr + tl.arange(0, n)[:, None] * n + tl.arange(0, n)[None, :])
        top, total = tl.reduce((x, tl.full((n, n), 1.0, tl.float32)), 1, _merge)
        tl.store(out_ptr + tl.arange(0, n), top + tl.log(total))

    calls = []
    plain = _merge.fn
    try:
        _merge.fn = lambda *args: (calls.append(1), plain(*args))[1]
        x, out = torch.randn(64, 64, generator=torch.Generator().manual_seed(6)), torch.zeros(64)
        kernel[(1,)](x, out, 64)
    finally:
        _merge.fn = plain
    torch.testing.assert_close(out, x.logsumexp(1), rtol=1e-6, atol=1e-6)
    assert 0 < len(calls) <= 6, f"{len(calls)} calls for a reduction over 64: one for each level of the tree"
