"""Casts to, from and between narrow types."""

import torch
import triton
import triton.language as tl

from tests.interpreter.checks.common import ALL, NARROW, check, patterns, same, singles


@triton.jit
def cast_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x.to(out_ptr.dtype.element_ty), mask=offs < n)


def cast(x, dtype):
    out = torch.zeros(x.shape, dtype=dtype)
    cast_kernel[(triton.cdiv(x.numel(), 16384),)](x, out, x.numel(), BLOCK_SIZE=16384)
    return out


def _add_cast_checks():
    def into(dtype):
        return lambda: same(cast(singles(), dtype), singles().to(dtype))

    def out_of(dtype):
        def both():
            same(cast(patterns(dtype), torch.float32), patterns(dtype).float())
            same(cast(patterns(dtype), torch.float16), patterns(dtype).half())

        return both

    for dtype in NARROW:
        name = str(dtype).removeprefix("torch.")
        ALL[f"float32_to_{name}"], ALL[f"{name}_to_float"] = into(dtype), out_of(dtype)


_add_cast_checks()


@check
def casts_between_narrow_types_and_integers():
    bits = patterns(torch.bfloat16)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        same(cast(bits, dtype), bits.to(dtype))
        same(cast(patterns(dtype), torch.bfloat16), patterns(dtype).bfloat16())
    integers = torch.arange(-70000, 70000, dtype=torch.int32)
    same(cast(integers, torch.bfloat16), integers.bfloat16())
    small = bits[bits.float().abs() < 2**30]
    same(cast(small, torch.int32), small.int())


def doubles():
    """Singles, patterns that no single has, and sums that lie beyond float32's reach of a tie."""
    gen = torch.Generator().manual_seed(7)
    random = torch.randint(-(2**63), 2**63 - 1, (4096,), generator=gen).view(torch.float64)
    near_ties = torch.tensor([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1e300, 1e-320], dtype=torch.float64)
    return torch.cat([singles(4096).double(), random, near_ties])


@check
def casts_between_narrow_types_and_other_floats():
    for dtype in NARROW:
        same(cast(doubles(), dtype), doubles().to(dtype))
        same(cast(patterns(dtype), torch.float64), patterns(dtype).double())
        same(cast(patterns(torch.float16), dtype), patterns(torch.float16).to(dtype))


@check
def casts_between_bf16_and_every_integer():
    gen = torch.Generator().manual_seed(8)
    bits = patterns(torch.bfloat16)
    for dtype in (torch.int8, torch.int16, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.bool):
        wide = torch.randint(-(2**62), 2**62, (4096,), generator=gen).to(dtype)
        same(cast(wide, torch.bfloat16), wide.bfloat16())
        if dtype != torch.bool:
            # Beyond what the integer holds, the result is the processor's.
            held = torch.iinfo(dtype)
            inside = bits[(bits.double() > float(held.min) - 1) & (bits.double() < float(held.max))]
            assert torch.equal(cast(inside, dtype), inside.float().to(dtype)), dtype


@check
def bf16_rounded_toward_zero():
    @triton.jit
    def kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
        offs = tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + offs, mask=offs < n)
        tl.store(out_ptr + offs, x.to(tl.bfloat16, fp_downcast_rounding="rtz"), mask=offs < n)

    x = singles(4096)
    x = torch.cat([x, torch.tensor([0x7F800001], dtype=torch.int32).view(torch.float32)])
    out = torch.zeros(x.shape, dtype=torch.bfloat16)
    kernel[(1,)](x, out, len(x), BLOCK_SIZE=triton.next_power_of_2(len(x)))
    bits = x.view(torch.int32) & -65536
    same(out, torch.where(x.isnan(), x, bits.view(torch.float32)).bfloat16())
