"""Conversions between types, and rounding to whole numbers: clamped, truncated and rounded as PTX says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch

from tests.simt.harness import integers, random
from tests.simt.values import N, hard_floats, rounded, run, same


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
