"""Random expressions, compiled and compared lane by lane with Python's own integers and numpy's floats."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simt.harness import integers, launch, random

N = 64
BINARY = ("+", "-", "*", "&", "|", "^", "min", "max", "<<", ">>")

WRAPPING = r"""
struct W { int v; __device__ W(int a) : v(a) {} };
__device__ W operator+(W a, W b) { return W((int)((unsigned)a.v + (unsigned)b.v)); }
__device__ W operator-(W a, W b) { return W((int)((unsigned)a.v - (unsigned)b.v)); }
__device__ W operator*(W a, W b) { return W((int)((unsigned)a.v * (unsigned)b.v)); }
__device__ W operator&(W a, W b) { return W(a.v & b.v); }
__device__ W operator|(W a, W b) { return W(a.v | b.v); }
__device__ W operator^(W a, W b) { return W(a.v ^ b.v); }
__device__ W operator<<(W a, W b) { return W((int)((unsigned)a.v << b.v)); }
__device__ W operator>>(W a, W b) { return W(a.v >> b.v); }
__device__ W min(W a, W b) { return W(a.v < b.v ? a.v : b.v); }
__device__ W max(W a, W b) { return W(a.v > b.v ? a.v : b.v); }
"""


def expressions(leaves: tuple[str, ...], operations: tuple[str, ...]) -> st.SearchStrategy:
    """Trees of (operation, left, right) over the leaves."""
    leaf = st.sampled_from(leaves) | st.integers(-100, 100)
    return st.recursive(leaf, lambda inner: st.tuples(st.sampled_from(operations), inner, inner), max_leaves=12)


def c_text(tree, suffix: str = "") -> str:
    """The expression in C++; shifts stay within the width, as C++ asks for."""
    if isinstance(tree, int):
        return f"({tree}{suffix})" if suffix else f"W({tree})"
    if isinstance(tree, str):
        return tree
    operation, left, right = tree
    a, b = c_text(left, suffix), c_text(right, suffix)
    if operation in ("min", "max"):
        return f"{operation}({a}, {b})"
    if operation in ("<<", ">>"):
        return f"({a} {operation} ({b} & W(31)))"
    return f"({a} {operation} {b})"


def wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def value_of(tree, names: dict[str, int]) -> int:
    """The expression by Python's integers, wrapped to 32 bits after each step."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return names[tree]
    operation, a, b = tree[0], value_of(tree[1], names), value_of(tree[2], names)
    functions = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "&": lambda: a & b,
        "|": lambda: a | b,
        "^": lambda: a ^ b,
        "min": lambda: min(a, b),
        "max": lambda: max(a, b),
        "<<": lambda: a << (b & 31),
        ">>": lambda: a >> (b & 31),
    }
    return wrap(functions[operation]())


@pytest.mark.slow
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(expressions(("x", "y"), BINARY), min_size=8, max_size=8))
def test_integer_expressions(trees: list) -> None:
    """Eight expressions a compilation, of a type that wraps: C++ leaves the overflow of int undefined."""
    rows = "\n".join(f"  o[{i}] = W({c_text(tree)}).v;" for i, tree in enumerate(trees))
    source = (
        WRAPPING + "__global__ void k(const int* a, const int* b, int* d) {\n"
        "  int i = threadIdx.x; int* o = d + 8 * i; W x(a[i]), y(b[i]);\n" + rows + "\n}\n"
    )
    a, b, d = integers(N, seed=1), integers(N, seed=2), torch.zeros(N, 8, dtype=torch.int32)
    a[::3] %= 50
    launch(source, "k", 1, N, a, b, d)
    for i in range(0, N, 5):
        names = {"x": int(a[i]), "y": int(b[i])}
        assert d[i].tolist() == [value_of(tree, names) for tree in trees]


def float_value(tree, names: dict[str, np.ndarray]) -> np.ndarray:
    """The expression by numpy, in float32 after each step."""
    if isinstance(tree, int):
        return np.full(N, tree, np.float32)
    if isinstance(tree, str):
        return names[tree]
    a, b = float_value(tree[1], names), float_value(tree[2], names)
    return {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[tree[0]](a, b)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(expressions(("x", "y"), ("+", "-", "*", "/")), min_size=8, max_size=8))
def test_float_expressions(trees: list) -> None:
    """Without contraction to fused multiply-adds each step is rounded to float32, as in numpy."""
    from tests.simt.harness import compiled

    rows = "\n".join(f"  o[{i}] = {c_text(tree, '.f')};" for i, tree in enumerate(trees))
    source = (
        "__global__ void k(const float* a, const float* b, float* d) {\n"
        "  int i = threadIdx.x; float* o = d + 8 * i; float x = a[i], y = b[i];\n" + rows + "\n}\n"
    )
    a, b, d = random(N, seed=1), random(N, seed=2), torch.zeros(N, 8)
    compiled(source, "--fmad=false")["k"].launch(1, N, a, b, d)
    with np.errstate(all="ignore"):
        want = np.stack([float_value(tree, {"x": a.numpy(), "y": b.numpy()}) for tree in trees], axis=1)
    np.testing.assert_array_equal(d.numpy(), want)
