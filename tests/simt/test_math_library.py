"""exp, log, sin and their like: not bit for bit, but within the error that CUDA documents for each."""

from __future__ import annotations

import numpy as np
import torch

from tests.simt.harness import random
from tests.simt.values import N, run


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
