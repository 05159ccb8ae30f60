"""Integer arithmetic, logic and bit tricks on simulated threads, against Python's whole numbers and numpy's."""

from __future__ import annotations

import numpy as np
import torch

from tests.simt.harness import integers
from tests.simt.values import N, run


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
