"""Masks: what conditions are, and what lanes hold that are not loaded."""

import torch
import triton
import triton.language as tl

from tests.interpreter.checks.common import check


@check
def conditions_are_truth_values():
    """Where one of them is a scalar, and where they are counted."""

    @triton.jit
    def kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK_SIZE: tl.constexpr):
        cols = tl.arange(0, BLOCK_SIZE)
        for row in tl.static_range(4):
            inside = (cols < n_cols) & (row + tl.program_id(0) < n_rows)
            x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=-1.0)
            n_below = (x < 1).to(tl.int32) + (x < 2).to(tl.int32) + (cols < 2).to(tl.int32)
            kept = tl.where(row + tl.program_id(0) < n_rows, n_below, 9)
            tl.store(out_ptr + row * BLOCK_SIZE + cols, kept, mask=row + tl.program_id(0) < 4)

    x, out = torch.tensor([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0], [2.0, 2.0, 0.0]]), torch.zeros(4, 4, dtype=torch.int32)
    kernel[(1,)](x, out, 3, 3, 4)
    assert out.tolist() == [[3, 2, 0, 2], [1, 2, 2, 2], [1, 1, 2, 2], [9, 9, 9, 9]]


@triton.jit
def unfilled_kernel(x_ptr, out_ptr, filled_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n))
    tl.store(filled_ptr + offs, tl.load(x_ptr + offs, mask=offs < n, other=0))


@check
def masked_lanes_hold_anything():
    """Without `other=`, that is; the lanes that are loaded, and those with `other=`, are what they should be."""
    floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for dtype in (*floats, torch.int8, torch.uint8, torch.int32, torch.int64):
        x = torch.ones(8).to(dtype)
        out, filled = torch.zeros(8).to(dtype), torch.ones(8).to(dtype)
        unfilled_kernel[(1,)](x, out, filled, 5, BLOCK_SIZE=8)
        rest = out[5:]
        assert (out[:5].float() == 1).all() and (filled.float() == torch.tensor([1.0] * 5 + [0.0] * 3)).all(), dtype
        huge = rest.float().isnan() if dtype.is_floating_point else rest == torch.iinfo(dtype).max
        assert huge.all(), (dtype, rest)


@triton.jit
def unfilled_single_kernel(x_ptr, out_ptr, n, OTHER: tl.constexpr, KIND: tl.constexpr):
    for i in range(4):
        if KIND == "scalar":
            at = i
        elif KIND == "block of one":
            at = i + tl.arange(0, 1)
        else:
            at = i + tl.arange(0, 1)[:, None] + tl.arange(0, 1)[None, :]
        filled = tl.load(x_ptr + at, mask=at < n, other=OTHER)
        of_a_tensor = tl.load(x_ptr + at, mask=at < n, other=tl.load(x_ptr + at * 0) * 0 + OTHER)
        nowhere = tl.load(x_ptr + at, mask=False, other=OTHER)
        tl.store(out_ptr + at, filled)
        tl.store(out_ptr + 4 + at, of_a_tensor)
        tl.store(out_ptr + 8 + at, nowhere)
        tl.store(out_ptr + 12 + at, tl.load(x_ptr + at, mask=at < n))


@check
def single_masked_values_hold_what_was_asked_for():
    """Triton asks `if other`. Of one value the stock interpreter answers by that value: no to `other=0`."""
    floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for dtype in (*floats, torch.int8, torch.uint8, torch.int32, torch.int64):
        for kind in ("scalar", "block of one", "matrix of one"):
            for other in (0, 0.0, 1):
                x, out = torch.full((4,), 3).to(dtype), torch.full((16,), 5).to(dtype)
                unfilled_single_kernel[(1,)](x, out, 2, other, kind)
                want = [3, 3, other, other] * 2 + [other] * 4 + [3, 3]
                assert out[:14].tolist() == want, (dtype, kind, other, out)
                rest = out[14:]
                huge = rest.isnan() if dtype.is_floating_point else rest == torch.iinfo(dtype).max
                assert huge.all(), (dtype, kind, rest)
