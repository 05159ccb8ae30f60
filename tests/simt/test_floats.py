"""Values of floating-point arithmetic and comparisons, bit for bit with torch or exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from tests.simt.harness import launch, random
from tests.simt.values import ARITHMETIC, SHAPE, N, hard_floats, rounded, run, same


def root(a: torch.Tensor) -> torch.Tensor:
    """Square roots, rounded right: torch's own may be off by one ulp where it calls a vector library."""
    return torch.from_numpy(np.sqrt(np.abs(a.numpy())))


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


def test_comparisons_with_nan() -> None:
    a, b = hard_floats(7), hard_floats(8)
    b[::4] = a[::4]
    d = torch.zeros(N, dtype=torch.int32)
    run("compare_floats", a, b, d)
    bits = [a < b, a <= b, a == b, a != b, ~(a < b), ~(a >= b), torch.isnan(a)]
    assert torch.equal(d, sum(one.int() << i for i, one in enumerate(bits)).int())
