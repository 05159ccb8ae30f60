"""Lab 10: what is asked, given and run for a product of matrices in tiles."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.cuda import kernel_of
from labkit.spec import Answer, Case, Exercise, Run
from labkit.unwritten import unwritten_floats

TILE = 16


@dataclass(frozen=True)
class Product(Case):
    """(m, k) times (k, n)."""

    m: int
    n: int
    k: int

    @property
    def grid(self) -> tuple[int, int]:
        return -(-self.n // TILE), -(-self.m // TILE)


def product_inputs(case: Product, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """Small whole numbers other than zero, so that nothing is rounded in whatever order they are added."""

    def matrix(rows: int, cols: int) -> torch.Tensor:
        signs = torch.randint(0, 2, (rows, cols), generator=gen) * 2 - 1
        return (torch.randint(1, 5, (rows, cols), generator=gen) * signs).float()

    return {"a": matrix(case.m, case.k), "b": matrix(case.k, case.n)}


def drive_product(ans, case: Product, tree: dict, stage) -> dict[str, torch.Tensor]:
    c = unwritten_floats(case.m, case.n)
    with stage.meter("cuda"):
        kernel = kernel_of(ans.matmul, "matmul")
        kernel.launch(case.grid, (TILE, TILE), tree["a"], tree["b"], c, case.m, case.n, case.k)
    return {"c": c}


TILED_MATMUL = Exercise(
    id="10-tiled-matmul",
    title="A product of matrices in tiles",
    points=0.4,
    optional=True,
    minutes=25,
    difficulty=3,
    answers=(Answer("matmul", kind="text"),),
    public=(Product(16, 16, 16), Product(32, 48, 64), Product(20, 35, 32), Product(33, 24, 41)),
    inputs=product_inputs,
    drive=drive_product,
    run=Run(cells=False),
    meters=("cuda",),
)
