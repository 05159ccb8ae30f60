"""What the tests of values share: launches over N elements, hard inputs, results as exact arithmetic has them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
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
