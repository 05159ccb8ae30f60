"""Values of arithmetic, logic and conversions, bit for bit with torch or exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from tests.simt.harness import integers, launch, random, source

ARITHMETIC = source("values")

N = 1000
SHAPE = (-(-N // 128), 128)


def run(name: str, *arguments) -> None:
    launch(ARITHMETIC, name, *SHAPE, *arguments, N)


def hard_floats(seed: int, dtype=torch.float32) -> torch.Tensor:
    """Numbers of every size, subnormal ones, infinities and zeros among them."""
    bits = integers(N, seed=seed)
    values = bits.view(torch.float32).clone()
    values[::3] = random(len(values[::3]), seed=seed)
    values[:8] = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, 3.4e38, 1.0])
    return values.to(dtype)


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    """Equal bit for bit; a NaN equals any NaN."""
    assert a.dtype == b.dtype
    equal = (a == b) & (torch.signbit(a) == torch.signbit(b)) | (torch.isnan(a) & torch.isnan(b))
    wrong = torch.nonzero(~equal).flatten()
    assert not len(wrong), f"{len(wrong)} differ, first {wrong[0]}: {a.flatten()[wrong[0]]} != {b.flatten()[wrong[0]]}"


def root(a: torch.Tensor) -> torch.Tensor:
    """Square roots, rounded right: torch's own may be off by one ulp where it calls a vector library."""
    return torch.from_numpy(np.sqrt(np.abs(a.numpy())))


def rounded(exact: Fraction, mode: str) -> float:
    """A fraction as float32 in one of the rounding modes, for results away from over- and underflow."""
    near = np.float32(float(exact))
    # float() has rounded once already: start from a neighbour and step.
    candidates = sorted({near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))})
    below = [c for c in candidates if Fraction(float(c)) <= exact]
    above = [c for c in candidates if Fraction(float(c)) >= exact]
    if mode == "rd" or (mode == "rz" and exact > 0):
        return float(below[-1])
    if mode == "ru" or (mode == "rz" and exact < 0):
        return float(above[0])
    low, high = Fraction(float(below[-1])), Fraction(float(above[0]))
    if exact - low == high - exact:
        return float(below[-1]) if int(np.float32(below[-1]).view(np.uint32)) % 2 == 0 else float(above[0])
    return float(below[-1]) if exact - low < high - exact else float(above[0])


def test_fused_multiply_add_of_float32_rounds_once() -> None:
    """Among the cases are sums that lie halfway between two float32 numbers after a rounding to float64."""
    a, b, c = (random(N, seed=seed) for seed in range(3))
    a[:3] = torch.tensor([1 + 2**-12, 1 + 2**-23, -(1 + 2**-12)])
    b[:3] = torch.tensor([1 + 2**-12, 1 + 2**-23, 1 + 2**-12])
    c[:3] = torch.tensor([2.0**-60, 2.0**30, -(2.0**-60)])
    c[3:200] *= 1e-9
    d = torch.zeros(N)
    run("fma_f32", a, b, c, d)
    want = [rounded(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), "rn") for x, y, z in zip(a, b, c)]
    same(d, torch.tensor(want))


def test_fused_multiply_add_in_directed_modes() -> None:
    a, b, c = (random(N, seed=seed) for seed in range(3))
    d = torch.zeros(N, 3)
    run("fma_modes", a, b, c, d)
    for column, mode in enumerate(("rz", "rd", "ru")):
        exact = (Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c))
        same(d[:, column].clone(), torch.tensor([rounded(one, mode) for one in exact]))


def test_fused_multiply_add_of_float64_rounds_once() -> None:
    a, b, c = (random(N, dtype=torch.float64, seed=seed) for seed in range(3))
    a[:2], b[:2], c[:2] = 1e200, 1e-250, 1e-60
    a[2:4], b[2:4], c[2:4] = 1e-200, 1e-130, 0.0
    c[4:300] = -a[4:300] * b[4:300]
    d = torch.zeros(N, dtype=torch.float64)
    run("fma_f64", a, b, c, d)
    want = [float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c)]
    same(d, torch.tensor(want, dtype=torch.float64))


@pytest.mark.parametrize(("name", "operation"), [("add_modes", "+"), ("divide_modes", "/")])
def test_directed_sums_and_quotients(name: str, operation: str) -> None:
    a, b = random(N, seed=1), random(N, seed=2) * 3
    modes = ("rz", "rd", "ru") if operation == "+" else ("rn", "rz", "rd", "ru")
    d = torch.zeros(N, len(modes))
    run(name, a, b, d)
    for column, mode in enumerate(modes):
        pairs = [(Fraction(float(x)), Fraction(float(y))) for x, y in zip(a, b)]
        exact = [x + y if operation == "+" else x / y for x, y in pairs]
        same(d[:, column].clone(), torch.tensor([rounded(one, mode) for one in exact]))


def test_float_operations_are_torchs() -> None:
    a, b = hard_floats(1), hard_floats(2)
    d = torch.zeros(N, 8)
    run("float_basics", a, b, d)
    least, largest = (torch.from_numpy(function(a.numpy(), b.numpy())) for function in (np.fmin, np.fmax))
    want = [a + b, a - b, a * b, a / b, root(a), least, largest, torch.copysign(a, b)]
    for column, one in enumerate(want):
        if column in (5, 6):  # torch leaves the sign of min(-0, +0) open, PTX does not
            ours, one = d[:, column] + 0.0, one + 0.0
            same(ours, one)
        elif column != 7:
            same(d[:, column].clone(), one)
    number = ~torch.isnan(a)
    same(d[number, 7], want[7][number])


def test_double_operations_are_torchs() -> None:
    a, b = random(N, dtype=torch.float64, seed=1), random(N, dtype=torch.float64, seed=2)
    d = torch.zeros(N, 4, dtype=torch.float64)
    run("double_basics", a, b, d)
    for column, one in enumerate([a + b, a * b, a / b, root(a)]):
        same(d[:, column].clone(), one)


def test_half_operations_round_once() -> None:
    a, b = hard_floats(3, torch.float16), hard_floats(4, torch.float16)
    d = torch.zeros(N, 4, dtype=torch.float16)
    run("half_basics", a, b, d)
    wide = a.double() * b.double() + a.double()
    for column, one in enumerate([a + b, a * b, a - b, wide.half()]):
        same(d[:, column].clone(), one)
    pairs = torch.zeros(N // 2, 3, 2, dtype=torch.float16)
    launch(ARITHMETIC, "half2_basics", SHAPE[0], SHAPE[1], a, b, pairs, N // 2)
    same(pairs[:, 0].reshape(-1), a + b)
    same(pairs[:, 1].reshape(-1), a * b)
    same(pairs[:, 2].reshape(-1) + 0.0, torch.fmax(a, b) + 0.0)


def test_bfloat16_operations_round_once() -> None:
    a, b = random(N, dtype=torch.bfloat16, seed=3), random(N, dtype=torch.bfloat16, seed=4)
    d = torch.zeros(N, 3, dtype=torch.bfloat16)
    run("bf16_basics", a, b, d)
    for column, one in enumerate([a + b, a * b, -a]):
        same(d[:, column].clone(), one)


def c_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Division towards zero; 0 where b is 0, as the kernel asks for."""
    quotient = [0 if not y else abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b)]
    return np.array([(one + 2**63) % 2**64 - 2**63 for one in quotient], np.int64)


def test_integer_operations_wrap() -> None:
    a, b = integers(N, seed=1), integers(N, seed=2)
    b[::5] = integers(len(b[::5]), low=-3, high=4, seed=3)
    d = torch.zeros(N, 16, dtype=torch.int32)
    run("int_basics", a, b, d)
    x, y = a.numpy().astype(np.int64), b.numpy().astype(np.int64)
    q = c_divide(x, y)
    want = [x + y, x - y, x * y, q, np.where(y == 0, 0, x - q * y), np.minimum(x, y), np.maximum(x, y), x * y >> 32]
    want += [x & y, x | y, x ^ y, ~x, x << (y & 31), x >> (y & 31), (x & 0xFFFFFFFF) >> (y & 31), abs(x)]
    for column, one in enumerate(want):
        assert (
            d[:, column].numpy() == one.astype(np.int64).astype(np.uint64).astype(np.uint32).view(np.int32)
        ).all(), column


def test_64_bit_integers() -> None:
    a = integers(N, low=-(2**62), high=2**62, dtype=torch.int64, seed=1)
    b = integers(N, low=-(2**62), high=2**62, dtype=torch.int64, seed=2)
    b[::2] >>= 40
    d = torch.zeros(N, 8, dtype=torch.int64)
    run("long_basics", a, b, d)
    for row in range(0, N, 7):
        x, y = int(a[row]), int(b[row])
        q = int(c_divide(np.array([x]), np.array([y]))[0])
        unsigned = (x % 2**64) * (y % 2**64) >> 64
        want = [x + y, x * y, q, x - q * y if y else 0, x * y >> 64, x >> (y & 63), max(x, y), unsigned]
        assert d[row].tolist() == [(one + 2**63) % 2**64 - 2**63 for one in want]


def test_bit_tricks() -> None:
    a, b = integers(N, seed=1), integers(N, seed=2)
    a[:3] = torch.tensor([0, -1, 1])
    d = torch.zeros(N, 10, dtype=torch.int32)
    run("bit_tricks", a, b, d)

    def signed(value: int) -> int:
        return (value + 2**31) % 2**32 - 2**31

    def piece(word: int, i: int) -> int:
        byte = word >> 8 * i & 255
        return byte - 256 if byte > 127 else byte

    for i in range(0, N, 3):
        x, y = int(a[i]) % 2**32, int(b[i]) % 2**32
        both, eight = y << 32 | x, [x >> 8 * j & 255 for j in range(4)] + [y >> 8 * j & 255 for j in range(4)]
        permuted = sum(eight[choice] << 8 * j for j, choice in enumerate((0, 4, 1, 5)))
        want = [
            x.bit_count(),
            32 - x.bit_length(),
            (x & -x).bit_length(),
            int(f"{x:032b}"[::-1], 2),
            permuted,
            both << (i & 31) >> 32,
            both >> (i & 31),
            sum(piece(x, j) * piece(y, j) for j in range(4)) + i,
            x.bit_count() + y.bit_count(),
            64 - (x << 16).bit_length(),
        ]
        assert d[i].tolist() == [signed(one) for one in want], i


def test_small_integers() -> None:
    a = integers(N, low=-(2**15), high=2**15, dtype=torch.int16)
    b = integers(N, low=0, high=256, dtype=torch.uint8)
    d = torch.zeros(N, dtype=torch.int16)
    run("small_types", a, b, d)
    wrapped = (a.int() * 3 + b.int()).to(torch.int16)
    assert torch.equal(d, wrapped >> 1)


def test_floats_to_other_types() -> None:
    a = hard_floats(5)
    a[100:200] = torch.arange(100) - 50.5
    d, e = torch.zeros(N, 5, dtype=torch.int32), torch.zeros(N, dtype=torch.int64)
    h, b, f = (torch.zeros(N, dtype=dtype) for dtype in (torch.float16, torch.bfloat16, torch.float64))
    run("convert_floats", a, d, e, h, b, f)
    same(h, a.half())
    same(b, a.bfloat16())
    same(f, a.double())
    x = a.double().numpy()

    def clamp(value: np.ndarray, low: int, high: int) -> np.ndarray:
        return np.where(np.isnan(value), 0, np.clip(value, low, high)).astype(np.int64)

    for column, function in enumerate((np.rint, np.trunc, np.floor, np.ceil)):
        assert (d[:, column].numpy() == clamp(function(x), -(2**31), 2**31 - 1)).all()
    assert (d[:, 4].numpy().view(np.uint32) == clamp(np.trunc(x), 0, 2**32 - 1)).all()
    inside = np.abs(x) < 2**62
    assert (e.numpy()[inside] == np.rint(x[inside]).astype(np.int64)).all()


def test_integers_to_floats() -> None:
    a, b = integers(N, seed=1), integers(N, low=-(2**62), high=2**62, dtype=torch.int64, seed=2)
    d, f = torch.zeros(N, 5), torch.zeros(N, dtype=torch.float64)
    run("convert_ints", a, b, d, f)
    same(d[:, 0].clone(), a.float())
    same(d[:, 1].clone(), torch.from_numpy(a.numpy().view(np.uint32).astype(np.float32)))
    same(d[:, 2].clone(), b.float())
    same(f, b.double())
    same(d[:, 3].clone(), torch.tensor([rounded(Fraction(int(x)), "rz") if x else 0.0 for x in a]))
    same(d[:, 4].clone(), torch.tensor([rounded(Fraction(int(x)), "rd") if x else 0.0 for x in b]))


def test_doubles_to_floats() -> None:
    a = random(N, dtype=torch.float64)
    d = torch.zeros(N, 4)
    run("narrow_double", a, d)
    for column, mode in enumerate(("rn", "rz", "rd", "ru")):
        same(d[:, column].clone(), torch.tensor([rounded(Fraction(float(x)), mode) for x in a]))


def test_rounding_to_whole_numbers() -> None:
    a = hard_floats(6)
    a[100:200] = torch.arange(100) - 50.5
    d = torch.zeros(N, 4)
    run("round_floats", a, d)
    for column, one in enumerate([a.round(), a.floor(), a.ceil(), a.trunc()]):
        same(d[:, column].clone(), one)


def test_comparisons_with_nan() -> None:
    a, b = hard_floats(7), hard_floats(8)
    b[::4] = a[::4]
    d = torch.zeros(N, dtype=torch.int32)
    run("compare_floats", a, b, d)
    bits = [a < b, a <= b, a == b, a != b, ~(a < b), ~(a >= b), torch.isnan(a)]
    assert torch.equal(d, sum(one.int() << i for i, one in enumerate(bits)).int())


def test_the_math_library_is_within_its_ulps() -> None:
    """CUDA's own bounds: expf 1, logf 1, sinf 2, tanhf 2, powf 4, erff 2 ulp (CUDA C++ Programming Guide, appendix)."""
    a = random(N) * 5
    d = torch.zeros(N, 6)
    run("library", a, d)
    x = a.double()
    want = [x.exp(), x.abs().log(), x.sin(), x.tanh(), x.abs() ** 1.5, torch.erf(x)]
    for column, (one, ulps) in enumerate(zip(want, (1, 1, 2, 2, 4, 2))):
        spacing = torch.from_numpy(np.spacing(np.abs(one.numpy()).astype(np.float32)).astype(np.float64))
        assert ((d[:, column].double() - one).abs() / spacing).max() <= ulps + 0.5, column


def test_approximations_are_within_what_ptx_documents() -> None:
    """ex2: 2 + 2 ulp; lg2, sin: absolute 2^-21; rsqrt, rcp: 2^-22.9 relative; fdividef: 2 ulp."""
    a = random(N).clamp(-3, 3)
    d = torch.zeros(N, 6)
    run("fast", a, d)
    x = a.double()
    want = [x.exp(), x.abs().log(), x.sin(), x.abs() ** -0.5, 1 / x, x / 3]
    for column, one in enumerate(want):
        error = (d[:, column].double() - one).abs()
        bound = 2.0**-20 + 0 * one if column in (1, 2) else one.abs() * 2.0**-21
        assert (error <= bound).all(), column


def test_the_math_library_of_halves() -> None:
    """cuda_fp16.h writes these in assembly of its own; its bound is 2 ulp."""
    a = random(N, dtype=torch.float16).clamp(-3, 3)
    d = torch.zeros(N, 3, dtype=torch.float16)
    run("library_f16", a, d)
    for column, one in enumerate([a.double().exp(), a.double().abs() ** -0.5, a.double().sin()]):
        spacing = np.spacing(np.abs(one.numpy()).astype(np.float16)).astype(np.float64)
        assert ((d[:, column].double() - one).abs().numpy() <= 2 * spacing).all(), column


def test_the_math_library_of_doubles() -> None:
    a = random(N, dtype=torch.float64) * 10
    d = torch.zeros(N, 3, dtype=torch.float64)
    run("library_f64", a, d)
    for column, one in enumerate([a.exp(), a.sin(), a.abs().log()]):
        torch.testing.assert_close(d[:, column], one, rtol=1e-15, atol=1e-15)
