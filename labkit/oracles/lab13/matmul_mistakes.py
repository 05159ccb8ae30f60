"""Lab 13: what the usual mistakes make of a matrix product in tiles; the hints of `matmul` ask for it.

How close a right result has to be is not said here.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.exercises.lab13.matmul import Product, factors
from labkit.interpreter.products import without_low_bits
from labkit.spec import CaseRun
from labkit.unwritten import unwritten

TILES = (16, 32)
"""Sizes of a tile that an answer may always take, whatever it is given."""
STEPS = (16, 32, 64, 128)
"""Lengths of a step along the inner dimension that an answer is likely to take."""


def product(a: Tensor, b: Tensor) -> Tensor:
    return torch.matmul(a.double(), b.double())


def is_like(got: dict, wrong: Tensor, close: float = 1e-4) -> bool:
    return torch.allclose(got["out"].double(), wrong.double(), rtol=close, atol=close)


def in_tf32(run: CaseRun[Product]) -> bool:
    """Off by what cutting the operands to tf32 makes, whatever the hardware does to the lowest bit."""
    if run.case.dtype != "float32" or run.case.precision != "ieee":
        return False
    cut = [torch.from_numpy(without_low_bits(one.contiguous().numpy())) for one in factors(run.case, run.tree)]
    return is_like(run.got, product(*cut), 1e-3)


def in_float16(run: CaseRun[Product]) -> bool:
    """Of float32: the factors or the result were rounded to float16."""
    if run.case.dtype != "float32" or run.case.precision != "ieee":
        return False
    a, b = factors(run.case, run.tree)
    out = run.got["out"]
    if torch.equal(out, out.half().float()):
        return is_like(run.got, product(a, b), 1e-3)
    return is_like(run.got, product(a.half(), b.half()))


def rounded_on_the_way(run: CaseRun[Product]) -> bool:
    right = run.expected["out"].double()
    out = run.got["out"].double()
    if run.got["out"].dtype != torch.float16 or torch.allclose(out, right, rtol=2e-3, atol=2e-3):
        return False
    return torch.allclose(out, right, rtol=0.02, atol=0.5)


def read_with(one: Tensor, strides: tuple[int, int]) -> Tensor:
    """What lies at i * strides[0] + j * strides[1] for each (i, j) of a matrix, and 0 past its last element."""
    n_held = sum((size - 1) * stride for size, stride in zip(one.shape, one.stride())) + 1
    memory = one.as_strided((n_held,), (1,))
    at = torch.arange(one.shape[0])[:, None] * strides[0] + torch.arange(one.shape[1])[None, :] * strides[1]
    return torch.where(at < n_held, memory[at.clamp(max=n_held - 1)], 0)


def resembles(got: Tensor, wrong: Tensor) -> bool:
    """Whether they differ by a hundredth of their size at the most, all elements together."""
    return bool((got.double() - wrong).norm() <= 1e-2 * wrong.norm())


def strides_swapped(run: CaseRun[Product]) -> bool:
    """One of the two, or both, read with the stride of rows for columns and the other way round."""
    a, b = factors(run.case, run.tree)
    turned_a, turned_b = (read_with(one, one.stride()[::-1]) for one in (a, b))
    pairs = ((turned_a, b), (a, turned_b), (turned_a, turned_b))
    return any(resembles(run.got["out"], product(x, y)) for x, y in pairs)


def steps_of_one(run: CaseRun[Product]) -> bool:
    """The number of a step was its offset: the windows along the inner dimension overlap."""
    a, b = factors(run.case, run.tree)

    def overlapping(step: int) -> Tensor:
        starts = range(-(-run.case.n_inner // step))
        return sum(product(a[:, n : n + step], b[n : n + step]) for n in starts)

    return any(resembles(run.got["out"], overlapping(step)) for step in STEPS if step < run.case.n_inner)


def strides_ignored(run: CaseRun[Product]) -> bool:
    """One of the two read as if its rows lay one right after the other."""
    a, b = factors(run.case, run.tree)
    flat_a = run.tree["a"].reshape(-1)[: a.numel()].view(a.shape)
    flat_b = run.tree["b"].reshape(-1)[: b.numel()].view(b.shape)
    wrong = [product(x, y) for x, y in ((flat_a, b), (a, flat_b), (flat_a, flat_b))]
    right = product(a, b)
    return any(not torch.equal(one, right) and resembles(run.got["out"], one) for one in wrong)


def read_as(run: CaseRun[Product], strides_a: tuple[int, int], strides_b: tuple[int, int]) -> bool:
    """Whether one factor, or both, was read with these strides, which are not its own."""
    a, b = factors(run.case, run.tree)
    wrong_a, wrong_b = read_with(a, strides_a), read_with(b, strides_b)
    right = product(a, b)
    wrong = [product(x, y) for x, y in ((wrong_a, b), (a, wrong_b), (wrong_a, wrong_b))]
    return any(not torch.equal(one, right) and resembles(run.got["out"], one) for one in wrong)


def strides_of_the_other(run: CaseRun[Product]) -> bool:
    a, b = factors(run.case, run.tree)
    return read_as(run, b.stride(), a.stride())


def rows_taken_as_dense(run: CaseRun[Product]) -> bool:
    """Column numbers were not multiplied by anything."""
    a, b = factors(run.case, run.tree)
    return read_as(run, (a.stride(0), 1), (b.stride(0), 1))


def overwritten(run: CaseRun[Product]) -> bool:
    """Only where lanes past the end of the row above would write, something is wrong."""
    wrong = ~torch.isclose(run.got["out"].double(), run.expected["out"].double(), rtol=1e-2, atol=1e-2)
    n_behind = -run.case.n_cols % run.case.tile
    return bool(wrong.any()) and not wrong[0].any() and not wrong[:, n_behind:].any()


def tiles_too_small(run: CaseRun[Product]) -> bool:
    """All is right as far as smaller tiles reach, one for each program of the right grid, and nothing lies behind."""
    case, out = run.case, run.got["out"]
    wrong = ~torch.isclose(out.double(), run.expected["out"].double(), rtol=1e-2, atol=1e-2)
    for tile in (each for each in TILES if each < case.tile):
        rows, cols = (tile * -(-size // case.tile) for size in (case.n_rows, case.n_cols))
        behind = torch.cat([out[rows:].flatten(), out[:rows, cols:].flatten()])
        if len(behind) and not wrong[:rows, :cols].any() and unwritten(behind).all():
            return True
    return False


def rest_not_written(run: CaseRun[Product]) -> bool:
    """Whole tiles are right, and all that is wrong lies behind them."""
    case = run.case
    wrong = ~torch.isclose(run.got["out"].double(), run.expected["out"].double(), rtol=1e-2, atol=1e-2)
    rows, cols = case.n_rows // case.tile * case.tile, case.n_cols // case.tile * case.tile
    return rows * cols > 0 and not wrong[:rows, :cols].any() and bool(wrong[rows:].any() or wrong[:, cols:].any())


def axes_swapped(run: CaseRun[Product]) -> bool:
    """As many rows of tiles are right as there should be columns, and the other way round, and nothing else."""
    case = run.case
    wrong = ~torch.isclose(run.got["out"].double(), run.expected["out"].double(), rtol=1e-2, atol=1e-2)
    rows, cols = -(-case.n_cols // case.tile) * case.tile, -(-case.n_rows // case.tile) * case.tile
    missing = torch.cat([wrong[rows:].flatten(), wrong[:rows, cols:].flatten()])
    return missing.numel() > 0 and not wrong[:rows, :cols].any() and missing.double().mean().item() > 0.9


def one_step_alone(run: CaseRun[Product]) -> bool:
    """Only the last step along the inner dimension is there."""
    a, b = factors(run.case, run.tree)
    starts = {(run.case.n_inner - 1) // step * step for step in STEPS} - {0}
    return any(resembles(run.got["out"], product(a[:, start:], b[start:])) for start in starts)


def first_step_again(run: CaseRun[Product]) -> bool:
    """The first step along the inner dimension in place of each one."""
    a, b = factors(run.case, run.tree)
    steps = [step for step in STEPS if step < run.case.n_inner]
    return any(
        resembles(run.got["out"], -(-run.case.n_inner // step) * product(a[:, :step], b[:step])) for step in steps
    )


def sum_so_far_twice(run: CaseRun[Product]) -> bool:
    """With each step the sum of those before is doubled."""
    a, b = factors(run.case, run.tree)
    for step in STEPS:
        total = torch.zeros_like(run.got["out"], dtype=torch.float64)
        for start in range(0, run.case.n_inner, step):
            total = 2 * total + product(a[:, start : start + step], b[start : start + step])
        if step < run.case.n_inner and resembles(run.got["out"], total):
            return True
    return False


def rest_left_out(run: CaseRun[Product]) -> bool:
    """Only whole steps along the inner dimension are summed, or only those up to another dimension's size."""
    case = run.case
    a, b = factors(case, run.tree)
    ends = {case.n_inner // step * step for step in STEPS}
    ends |= {-(-size // step) * step for size in (case.n_rows, case.n_cols) for step in STEPS}
    return any(resembles(run.got["out"], product(a[:, :end], b[:end])) for end in ends if 0 < end < case.n_inner)


def first_step_left_out(run: CaseRun[Product]) -> bool:
    """The sums begin with the second step along the inner dimension."""
    a, b = factors(run.case, run.tree)
    return any(resembles(run.got["out"], product(a[:, step:], b[step:])) for step in STEPS if step < run.case.n_inner)


def stored_by_columns(run: CaseRun[Product]) -> bool:
    """The memory of the result holds one column after the other."""
    right = run.expected["out"]
    return is_like(run.got, right.t().reshape(right.shape), 1e-2)


def zero_past_the_other_size(run: CaseRun[Product]) -> bool:
    """Rows past the number of columns are 0, or columns past the number of rows, and all else is right."""
    case, out = run.case, run.got["out"]
    wrong = ~torch.isclose(out.double(), run.expected["out"].double(), rtol=1e-2, atol=1e-2)
    kept = slice(min(case.n_rows, case.n_cols))
    return bool(wrong.any() and not wrong[kept, kept].any() and not out[wrong].any())


def shaped_like_a_factor(run: CaseRun[Product]) -> bool:
    """Not (n_rows, n_cols), but the shape of a or of b."""
    shape = run.got["out"].shape
    return shape != run.expected["out"].shape and shape in [one.shape for one in factors(run.case, run.tree)]


def never_stored(run: CaseRun[Product]) -> bool:
    return run.got["out"].shape == run.expected["out"].shape and bool(unwritten(run.got["out"]).any())
