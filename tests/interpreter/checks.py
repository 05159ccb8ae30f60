"""One check per patch, each a function without arguments that raises where values are wrong.

They are run on the patched interpreter, where all pass, and on the stock one, where all but STOCK_PASSES must fail.
"""

import inspect
import linecache

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime.interpreter import InterpreterBuilder

ALL = {}
NARROW = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


def check(function):
    ALL[function.__name__] = function
    return function


def patterns(dtype):
    """Every bit pattern of a narrow type."""
    integers = torch.arange(2 ** (8 * dtype.itemsize), dtype=torch.int32)
    return integers.to(torch.uint8 if dtype.itemsize == 1 else torch.uint16).view(dtype)


def singles(n=1 << 15):
    """Random float32 patterns, and every value halfway between two neighbours in each narrow type, and its own."""
    gen = torch.Generator().manual_seed(0)
    random = torch.randint(-(2**31), 2**31, (n,), generator=gen, dtype=torch.int64).to(torch.int32).view(torch.float32)
    ties = []
    for dtype in NARROW:
        values = patterns(dtype).float()
        values = values[values.isfinite()].unique()
        ties += [values, values[:-1] + (values[1:] - values[:-1]) / 2]
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 3.4e38, 464.0, 465.0, 61440.0, 1e-45])
    return torch.cat([random, *ties, special])


def same(got, want):
    """Equal to the bit, NaN equal to any NaN, and zeros by their sign."""
    assert got.dtype == want.dtype and got.shape == want.shape
    got, want = got.float(), want.float()
    wrong = ~((got == want) & (got.signbit() == want.signbit()) | (got.isnan() & want.isnan()))
    at = wrong.nonzero()[:1]
    assert not wrong.any(), f"{int(wrong.sum())} differ; at {at.tolist()} got {got[wrong][0]} want {want[wrong][0]}"


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


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = tl.load(y_ptr + offs, mask=offs < n)
    if OP == "add":
        z = x + y
    elif OP == "sub":
        z = x - y
    elif OP == "mul":
        z = x * y
    elif OP == "div":
        z = x / y
    elif OP == "less":
        z = x < y
    elif OP == "equal":
        z = x == y
    elif OP == "maximum":
        z = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "scaled":
        z = x * 1.5
    elif OP == "negative":
        z = -x
    else:
        z = tl.abs(x)
    tl.store(out_ptr + offs, z.to(out_ptr.dtype.element_ty), mask=offs < n)


TORCH = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "less": torch.lt,
    "equal": torch.eq,
    "maximum": torch.maximum,
    "negative": lambda x, y: -x,
    "abs": lambda x, y: x.abs(),
}


def binary(op, x, y):
    want = TORCH[op](x, y)
    out = torch.zeros(x.shape, dtype=want.dtype)
    binary_kernel[(1,)](x, y, out, op, len(x), BLOCK_SIZE=triton.next_power_of_2(len(x)))
    return out, want


def _add_arithmetic_checks():
    def of(op):
        def run():
            # Neighbours in a shuffled order meet values of every size, infinities and NaN included.
            x = patterns(torch.bfloat16)[torch.randperm(65536, generator=torch.Generator().manual_seed(1))]
            y = x.roll(1)
            x[:4], y[:4] = torch.tensor([float("nan"), 0.0, -0.0, 1.0]), torch.tensor([float("nan"), -0.0, 0.0, 1.0])
            if op == "negative" and not hasattr(InterpreterBuilder, "create_fneg"):
                # Before 3.9 Triton compiles -x to 0 - x, on a GPU as well, whose zero is positive.
                x, y = x[x != 0], y[x != 0]
            same(*binary(op, x, y))
            gen = torch.Generator().manual_seed(2)
            x, y = (torch.randn(8192, generator=gen).bfloat16() for _ in range(2))
            same(*binary(op, x, y))

        return run

    for op in TORCH:
        ALL[f"bf16_{op}"] = of(op)


_add_arithmetic_checks()


def _add_fp8_checks():
    def of(op):
        def run():
            for dtype in NARROW[1:]:
                x = patterns(dtype)
                x, y = x.repeat(256), x.repeat_interleave(256)
                want = TORCH[op](x.float(), y.float())
                want = want if want.dtype == torch.bool else want.to(dtype)
                out = torch.zeros_like(want)
                binary_kernel[(1,)](x, y, out, op, len(x), BLOCK_SIZE=len(x))
                same(out, want)

        return run

    for op in ("add", "sub", "mul", "div", "less", "equal", "maximum", "abs"):
        ALL[f"fp8_{op}"] = of(op)


_add_fp8_checks()


@check
def bf16_constants():
    @triton.jit
    def kernel(out_ptr):
        offs = tl.arange(0, 4)
        tl.store(out_ptr + offs, tl.full((4,), 1.00390625, tl.bfloat16) + offs.to(tl.bfloat16))

    out = torch.zeros(4, dtype=torch.bfloat16)
    kernel[(1,)](out)
    same(out, torch.arange(4).bfloat16() + torch.tensor(1.00390625).bfloat16())


@check
def bf16_fused_multiply_add_rounds_once():
    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, out_ptr, n: tl.constexpr):
        offs = tl.arange(0, n)
        x, y, z = tl.load(x_ptr + offs), tl.load(y_ptr + offs), tl.load(z_ptr + offs)
        tl.store(out_ptr + offs, tl.fma(x, y, z))

    gen = torch.Generator().manual_seed(3)
    x, y, z = (torch.randn(4096, generator=gen).bfloat16() for _ in range(3))
    # 1.0625 × 1.0625 is one and a half steps above 1.125: a tie, which the tiny term breaks below float64's reach.
    x[:2], y[:2], z[0], z[1] = 1.0625, 1.0625, 2.0**-100, -(2.0**-100)
    out = torch.zeros_like(x)
    kernel[(1,)](x, y, z, out, len(x))
    from fractions import Fraction

    for i in range(len(x)):
        exact = Fraction(x[i].item()) * Fraction(y[i].item()) + Fraction(z[i].item())
        got = out[i].item()
        step = 2.0 ** (np.frexp(abs(got))[1] - 8) if got else 2.0**-133
        below, above = got - step, got + step
        assert abs(Fraction(got) - exact) <= min(abs(Fraction(below) - exact), abs(Fraction(above) - exact)), i
    assert out[0] > out[1], "the sign of the tiny term decides the tie"


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


@check
def functions_of_libdevice():
    @triton.jit
    def kernel(x_ptr, out_ptr, n: tl.constexpr):
        offs = tl.arange(0, n)
        x = tl.load(x_ptr + offs)
        tl.store(out_ptr + offs, libdevice.tanh(x))
        tl.store(out_ptr + n + offs, libdevice.erf(x))
        tl.store(out_ptr + 2 * n + offs, libdevice.pow(x, x))

    x, out = torch.linspace(0.01, 3, 64), torch.zeros(3, 64)
    kernel[(1,)](x, out, 64)
    wide = x.double()
    same(out, torch.stack([wide.tanh(), wide.erf(), wide.pow(wide)]).float())


@triton.autotune([triton.Config({"BLOCK_SIZE": size}) for size in (64, 16)], key=["n"], reset_to_zero=["out_ptr"])
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.atomic_add(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


@check
def autotuning_takes_the_first_configuration():
    x, out = torch.arange(100.0), torch.zeros(100)
    tuned_kernel[lambda meta: (triton.cdiv(100, meta["BLOCK_SIZE"]),)](x, out, 100)
    assert torch.equal(out, x)
    assert tuned_kernel.best_config.kwargs == {"BLOCK_SIZE": 64}


@triton.jit
def add_one_kernel(x_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)


@check
def autotuning_in_place_leaves_its_trials_behind_unless_they_are_restored():
    for restored, expected in (([], 3.0), (["x_ptr"], 1.0)):
        sizes = [triton.Config({"BLOCK_SIZE": size}) for size in (64, 16)]
        tuned = triton.autotune(sizes, key=["n"], restore_value=restored)(add_one_kernel)
        x = torch.zeros(100)
        tuned[lambda meta: (triton.cdiv(100, meta["BLOCK_SIZE"]),)](x, 100)
        assert torch.equal(x, torch.full((100,), expected)), (restored, x[0])
        # Tuned by now.
        tuned[lambda meta: (triton.cdiv(100, meta["BLOCK_SIZE"]),)](x, 100)
        assert torch.equal(x, torch.full((100,), expected + 1))


@check
def kernels_may_capture_variables():
    factor = tl.constexpr(3)

    @triton.jit
    def scaled(x, by: tl.constexpr):
        return x * by

    @triton.jit
    def kernel(x_ptr, n: tl.constexpr, twice: tl.constexpr = 2):
        offs = tl.arange(0, n)
        tl.store(x_ptr + offs, scaled(tl.load(x_ptr + offs), factor) * twice)

    x = torch.arange(8.0)
    kernel[(1,)](x, 8)
    assert torch.equal(x, 6 * torch.arange(8.0))


@check
def no_names_are_left_behind():
    source = "import triton\nimport triton.language as tl\n" + inspect.getsource(reduce_kernel.fn)
    names = {"__name__": "notebook"}
    file = f"<{id(names)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    before = set(names)
    out = torch.zeros(1)
    args = (torch.ones(16), out, out.clone(), torch.zeros(1, dtype=torch.int32), torch.zeros(16), 16)
    names["reduce_kernel"][(1,)](*args)
    assert out.item() == 16
    assert set(names) - before <= {"interpreter_semantic", "_InterpreterComparison"}


@check
def the_language_is_exchanged_once_a_launch():
    from triton.runtime import interpreter

    x = torch.zeros(8, 128)
    calls = []
    plain = interpreter._patch_builtin
    interpreter._patch_builtin = lambda *args: (calls.append(1), plain(*args))[1]
    try:
        out = torch.zeros(8)
        reduce_kernel[(8,)](x, out, out.clone(), torch.zeros(8, dtype=torch.int32), torch.zeros_like(x), 128)
    finally:
        interpreter._patch_builtin = plain
    assert len(calls) <= 7, f"the language was looked up {len(calls)} times in one launch"


@check
def the_language_is_given_back():
    before = {name: getattr(tl, name) for name in dir(tl)}
    dot(torch.eye(16), torch.eye(16))
    assert {name: getattr(tl, name) for name in dir(tl)} == before


STOCK_PASSES = {
    "the_language_is_given_back",
    "bf16_negative",
    "bf16_abs",
    "fp8_abs",
    "conditions_are_truth_values",  # until 3.8
}
"""What the stock interpreter does right, in some version at least; kept because our patches could break it."""


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
