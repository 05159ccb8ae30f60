"""Numbers that take several words, doubles of every size in every rounding mode, pieces of words: bit for bit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import torch

from tests.simt.harness import integers, launch, random, source

WIDE = source("wide")
N = 600
SHAPE = (-(-N // 128), 128)
MODES = ("rz", "rd", "ru")


def every_size(seed: int) -> torch.Tensor:
    """Doubles from the smallest to the largest, some with few bits, so that ties occur."""
    exponents = integers(N, low=-1074, high=1023, seed=seed).numpy()
    digits = random(N, dtype=torch.float64, seed=seed + 1).numpy()
    digits[::2] = 1 + integers(N, low=0, high=8, seed=seed + 2).numpy()[::2] / 8
    with np.errstate(all="ignore"):
        values = np.ldexp(digits, exponents)
    return torch.from_numpy(np.where((values == 0) | np.isinf(values), 1.5, values))


def rounded(exact: Fraction, mode: str) -> float:
    """A fraction as a double; "rn" to nearest even, as Python rounds."""
    try:
        near = float(exact)
    except OverflowError:
        near = math.inf if exact > 0 else -math.inf
    if mode == "rn" or (math.isfinite(near) and Fraction(near) == exact):
        return near
    too_large = near > 0 if math.isinf(near) else Fraction(near) > exact
    down = math.nextafter(near, -math.inf) if too_large else near
    up = near if too_large else math.nextafter(near, math.inf)
    return {"rd": down, "ru": up, "rz": down if exact > 0 else up}[mode]


def check(got: torch.Tensor, exact: list[Fraction], mode: str) -> None:
    wrong = [i for i, one in enumerate(exact) if float(got[i]) != rounded(one, mode)]
    assert not wrong, f"{len(wrong)} differ, first {wrong[0]}: {float(got[wrong[0]]).hex()}"


def test_128_bit_division() -> None:
    """The compiler makes it of additions that pass a carry on, some of which read what a subtraction has left."""
    a, b = (integers(N, low=-(2**62), high=2**62, dtype=torch.int64, seed=seed) for seed in (1, 2))
    a[::3] >>= 50
    d = torch.zeros(N, 6, dtype=torch.int64)
    launch(WIDE, "division", *SHAPE, a, b, d, N)
    for i in range(N):
        x, y = (int(a[i]) << 64) | (int(b[i]) % 2**64), int(b[i]) >> i % 50 | 1
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        wanted = (quotient, x - quotient * y, x % 2**128 // 1000003)
        words = [piece for one in wanted for piece in (one % 2**64, one % 2**128 >> 64)]
        assert [int(word) % 2**64 for word in d[i]] == words, i


def test_quotients_and_roots_of_doubles_in_directed_modes() -> None:
    a, b = every_size(1), every_size(5)
    d = torch.zeros(N, 9, dtype=torch.float64)
    launch(WIDE, "directed", *SHAPE, a, b, d, N)
    numbers = [(Fraction(float(x)), Fraction(float(y))) for x, y in zip(a, b, strict=True)]
    for column, mode in enumerate(MODES):
        check(d[:, column], [x / y for x, y in numbers], mode)
        check(d[:, 3 + column], [1 / y for _, y in numbers], mode)
        for (x, _), found in zip(numbers, d[:, 6 + column].tolist(), strict=True):
            low, high = (found, math.nextafter(found, math.inf)) if mode != "ru" else (math.nextafter(found, 0), found)
            inside = Fraction(low) ** 2 <= abs(x) < Fraction(high) ** 2
            assert inside or Fraction(found) ** 2 == abs(x), mode


def test_fused_multiply_add_of_doubles_of_every_size() -> None:
    """Also where the product is too large or too small for a double by itself, and the sum is subnormal."""
    a, b, c = every_size(1), every_size(5), every_size(9)
    with np.errstate(all="ignore"):
        product = (a * b).numpy()
    near = np.isfinite(product) & (np.arange(N) % 3 == 0)
    c[near] = torch.from_numpy(-product[near] * (1 + 2.0**-52))
    c[1::6] = torch.from_numpy(np.arange(len(c[1::6])) * 5e-324)
    b[1::6] = torch.from_numpy(np.ldexp(1.0, -1070 - np.frexp(a[1::6].numpy())[1]))
    b[b == 0], c[torch.isinf(c)] = 1.0, 0.0
    d = torch.zeros(N, 4, dtype=torch.float64)
    launch(WIDE, "fused", *SHAPE, a, b, c, d, N)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    for column, mode in enumerate(("rn", *MODES)):
        check(d[:, column], exact, mode)


def test_differences_of_the_pieces_of_words() -> None:
    a, b = integers(N, seed=1), integers(N, seed=2)
    d = torch.zeros(N, 3, dtype=torch.int32)
    launch(WIDE, "differences", *SHAPE, a, b, d, N)
    for i in range(N):
        pieces = {size: zip(_pieces(int(a[i]), size), _pieces(int(b[i]), size), strict=True) for size in (1, 2)}
        apart = {size: [abs(x - y) for x, y in pairs] for size, pairs in pieces.items()}
        word = sum(one << 8 * place for place, one in enumerate(apart[1]))
        assert [int(one) % 2**32 for one in d[i]] == [word, sum(apart[1]), sum(apart[2])]


def _pieces(word: int, size: int) -> list[int]:
    return [word >> 8 * at & 256**size - 1 for at in range(0, 4, size)]
