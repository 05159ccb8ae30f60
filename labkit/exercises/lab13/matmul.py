"""Lab 13: a matrix product in tiles, in the precision asked for. What is asked, given and run."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.spec import Answer, Case, Exercise, Run

PATIENT = Run(wall_s=30.0)
"""A check takes about a second; the first one of a process also reads in Triton's compiler, which can take ten."""


@dataclass(frozen=True)
class Product(Case):
    """a (n_rows, n_inner) times b (n_inner, n_cols), in square tiles of the result.

    precision: what `tl.dot` is to do with float32; it changes nothing for float16. a_by_columns: the columns of a are
    contiguous instead of its rows. b_gap: elements between the rows of b, as in a slice of a wider matrix.
    """

    n_rows: int = 40
    n_cols: int = 40
    n_inner: int = 40
    dtype: str = "float32"
    precision: str = "ieee"
    tile: int = 32
    a_by_columns: bool = False
    b_gap: int = 0

    @property
    def itemsize(self) -> int:
        return getattr(torch, self.dtype).itemsize


def product_inputs(case: Product, gen: torch.Generator) -> dict:
    """a, by columns as (n_inner, n_rows), and b with its gap (n_inner, n_cols + b_gap).

    In float16, the second half of each sum nearly takes back the first, so that a sum rounded on the way shows.
    """
    a = torch.randn(case.n_rows, case.n_inner, generator=gen)
    b = torch.randn(case.n_inner, case.n_cols + case.b_gap, generator=gen)
    if case.dtype == "float16":
        half = case.n_inner // 2
        a[:, half : 2 * half] = a[:, :half]
        b[half : 2 * half] = b[half : 2 * half] / 8 - 4 * b[:half]
        b[:half] *= 4
    tree = {"a": a.t() if case.a_by_columns else a, "b": b}
    return {name: one.contiguous().to(getattr(torch, case.dtype)) for name, one in tree.items()}


def factors(case: Product, tree: dict) -> tuple[Tensor, Tensor]:
    """What the answer gets: a (n_rows, n_inner) and b (n_inner, n_cols), with the strides of the case."""
    return (tree["a"].t() if case.a_by_columns else tree["a"]), tree["b"][:, : case.n_cols]


def drive_product(ans, case: Product, tree: dict, stage) -> dict:
    """One product, its traffic counted and its kernel compiled."""
    a, b = factors(case, tree)
    with stage.meter("traffic"), stage.meter("compiled"):
        return {"out": ans.matmul(a, b, case.precision, case.tile)}


MATMUL = Exercise(
    id="13-matmul",
    title="A matrix product in tiles",
    points=4,
    minutes=35,
    difficulty=2,
    answers=(Answer("matmul"),),
    public=(
        Product(37, 29, 45, tile=16),
        Product(70, 50, 81, precision="tf32"),
        Product(45, 67, 140, "float16", a_by_columns=True, b_gap=5),
        # Where no tile is larger, a program that always has one of 32 x 32 fills the result.
        Product(75, 90, 36, "float16", tile=64),
    ),
    inputs=product_inputs,
    drive=drive_product,
    run=PATIENT,
    meters=("traffic", "compiled"),
    full_size=Product(4096, 4096, 4096, "float16", tile=64),
)
