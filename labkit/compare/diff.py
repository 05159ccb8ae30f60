"""Find the first difference between an expected tree and the one that came back.

Types come before dtypes, dtypes before shapes, shapes before values, so that the message names the root of the
trouble. It does not guess why the difference is there: that is what an exercise's hints are for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from labkit.spec import EXACT, Tolerance, Tree
from labkit.tree import Opaque

_FLOAT_BITS = 1000
"""Integers of more bits are near or beyond the largest float, and cannot be subtracted from one."""


@dataclass(frozen=True)
class Mismatch:
    """Where and how `got` differs. `kind`: "type", "keys", "length", "dtype", "shape" or "value".

        Mismatch("value", "out", "1.0", "2.0", index=(0, 3), n_bad=1, n_total=8, max_error=1.0)

    path is dotted ("grads.0"), index the first wrong element in row-major order, n_bad of n_total differ.
    """

    kind: str
    path: str
    expected: str
    got: str
    index: tuple[int, ...] | None = None
    n_bad: int = 0
    n_total: int = 0
    max_error: float | None = None
    tolerance: Tolerance = EXACT
    dtype: str | None = None


def compare(
    expected: Tree, got: Tree, tolerance: Tolerance | Mapping[str, Tolerance] = EXACT, path: str = ""
) -> Mismatch | None:
    """The first mismatch of `got` against `expected`, or None when it is within tolerance everywhere.

    A mapping of tolerances is looked up by the top-level key; a missing key means exact.
    """
    if isinstance(tolerance, Mapping):
        if not isinstance(expected, dict):
            raise TypeError(f"a tolerance per key needs a dict to compare with, not {_kind(expected)}")
        if isinstance(got, dict) and got.keys() == expected.keys():
            for key, item in expected.items():
                if found := compare(item, got[key], tolerance.get(key, EXACT), key):
                    return found
            return None
        tolerance = EXACT
    if isinstance(expected, torch.Tensor):
        return _compare_tensors(expected, got, tolerance, path)
    if isinstance(expected, bool | str) or expected is None:
        same = type(got) is type(expected) and got == expected
        return None if same else _plain_mismatch(expected, got, path)
    if isinstance(expected, int | float):
        return _compare_numbers(expected, got, tolerance, path)
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return _type_mismatch(expected, got, path)
        if expected.keys() != got.keys():
            return Mismatch("keys", path, ", ".join(sorted(expected)), ", ".join(sorted(got)) or "no keys")
        pairs = ((key, expected[key], got[key]) for key in expected)
    else:
        if not isinstance(got, list):
            return _type_mismatch(expected, got, path)
        if len(expected) != len(got):
            return Mismatch("length", path, f"{len(expected)} items", f"{len(got)} items")
        pairs = ((str(i), left, right) for i, (left, right) in enumerate(zip(expected, got, strict=True)))
    for key, left, right in pairs:
        if found := compare(left, right, tolerance, f"{path}.{key}" if path else key):
            return found
    return None


def _compare_tensors(expected: torch.Tensor, got: Tree, tolerance: Tolerance, path: str) -> Mismatch | None:
    if not isinstance(got, torch.Tensor):
        return _type_mismatch(expected, got, path)
    if tolerance.check_dtype and got.dtype != expected.dtype:
        return Mismatch("dtype", path, _dtype(expected), _dtype(got))
    if got.shape != expected.shape:
        return Mismatch("shape", path, str(tuple(expected.shape)), str(tuple(got.shape)))
    if expected.numel() == 0:
        return None
    if expected.is_complex() or got.is_complex():
        left, right = expected.to(torch.complex128), got.to(torch.complex128)
    elif expected.is_floating_point() or got.is_floating_point():
        left, right = expected.to(torch.float64), got.to(torch.float64)
    else:
        left, right = expected.to(torch.int64), got.to(torch.int64)
    agree = (left == right) | (left.isnan() & right.isnan())
    if left.dtype == torch.int64:
        # In float64, because a difference may overflow; at least 1, because there large neighbours may coincide.
        left, right = left.to(torch.float64), right.to(torch.float64)
        error = (left - right).abs().clamp_min(1.0)
    else:
        error = (left - right).abs().to(torch.float64)
    error = torch.where(agree, 0.0, error.nan_to_num(nan=math.inf, posinf=math.inf))
    size = left.abs().to(torch.float64).nan_to_num(nan=0.0, posinf=0.0)
    tolerance = replace(tolerance, atol=tolerance.atol + tolerance.of_largest * float(size.max()), of_largest=0.0)
    bad = error > tolerance.atol + tolerance.rtol * size
    n_bad = int(bad.sum())
    if n_bad == 0:
        return None
    flat = int(bad.reshape(-1).nonzero()[0])
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), expected.shape))
    want, have = _numbers(expected.reshape(-1)[flat].item(), got.reshape(-1)[flat].item())
    return Mismatch(
        "value",
        path,
        want,
        have,
        index=index,
        n_bad=n_bad,
        n_total=expected.numel(),
        max_error=float(error.max()),
        tolerance=tolerance,
        dtype=_dtype(expected),
    )


def _compare_numbers(expected: float, got: Tree, tolerance: Tolerance, path: str) -> Mismatch | None:
    if isinstance(got, bool) or not isinstance(got, int | float):
        return _type_mismatch(expected, got, path)
    if isinstance(expected, int) and isinstance(got, float) and tolerance == EXACT and not got.is_integer():
        return _plain_mismatch(expected, got, path)
    if expected == got or (math.isnan(expected) and math.isnan(got)):
        return None
    if isinstance(got, int) and got.bit_length() > _FLOAT_BITS:
        have = f"an integer of {got.bit_length()} bits"
        return Mismatch("value", path, _short(repr(expected)), have, n_bad=1, n_total=1)
    error = abs(expected - got)
    tolerance = replace(tolerance, rtol=tolerance.rtol + tolerance.of_largest, of_largest=0.0)
    if math.isfinite(expected) and error <= tolerance.atol + tolerance.rtol * abs(expected):
        return None
    want, have = _numbers(expected, got)
    return Mismatch(
        "value",
        path,
        want,
        have,
        n_bad=1,
        n_total=1,
        max_error=error if math.isfinite(error) else None,
        tolerance=tolerance,
    )


def _plain_mismatch(expected: Tree, got: Tree, path: str) -> Mismatch:
    if type(got) is not type(expected) and not isinstance(expected, int):
        return _type_mismatch(expected, got, path)
    return Mismatch("value", path, _short(repr(expected)), _short(repr(got)), n_bad=1, n_total=1)


def _type_mismatch(expected: Tree, got: Tree, path: str) -> Mismatch:
    return Mismatch("type", path, _kind(expected), _kind(got))


def _kind(value: Tree) -> str:
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        return f"a tensor of {_dtype(value)}, shape {tuple(value.shape)}"
    if isinstance(value, Opaque):
        return f"{value.type_name}" + (f": {value.text}" if value.text else "")
    names = {bool: "True or False", int: "an int", float: "a float", str: "a string", list: "a list", dict: "a dict"}
    name = names.get(type(value), type(value).__name__)
    return name if isinstance(value, list | dict) else f"{name} ({_short(repr(value))})"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _numbers(expected: complex, got: complex) -> tuple[str, str]:
    """Both numbers in as few digits as tell them apart, from nine (enough for any two float32) on."""
    for digits in (9, 12, 17):
        texts = _number(expected, digits), _number(got, digits)
        if texts[0].removesuffix(".0") != texts[1].removesuffix(".0"):
            break
    return texts


def _number(value: complex, digits: int) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.{digits}g}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
