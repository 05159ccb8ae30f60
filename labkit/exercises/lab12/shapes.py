"""Lab 12: the sizes that its kernels are run on, and tensors of these sizes. Nothing is run or judged here."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.spec import Case, Run, Tree

PATIENT = Run(wall_s=30.0)
"""A check takes less than a second; the first one of a process also reads in Triton's compiler, which can take ten."""


@dataclass(frozen=True)
class Vector(Case):
    """n numbers of a dtype, by its name in torch."""

    n: int = 1000
    dtype: str = "float32"

    @property
    def n_bytes(self) -> int:
        """The bytes of one such vector."""
        return self.n * dtype_of(self).itemsize


@dataclass(frozen=True)
class Rows(Case):
    """A matrix whose rows lie n_cols + gap elements apart, as in a slice of a wider one."""

    n_rows: int = 6
    n_cols: int = 96
    dtype: str = "float32"
    gap: int = 0

    @property
    def n_elements(self) -> int:
        return self.n_rows * self.n_cols

    @property
    def n_bytes(self) -> int:
        """The bytes of the matrix, without the gaps."""
        return self.n_elements * dtype_of(self).itemsize


@dataclass(frozen=True)
class Graded(Rows):
    """dout_by_columns: whether the gradient that comes in is a transposed matrix, with contiguous columns."""

    dout_by_columns: bool = False

    @property
    def copied_bytes(self) -> int:
        """What making this gradient contiguous reads, and writes once more."""
        return self.n_bytes if self.dout_by_columns else 0


def dtype_of(case: Vector | Rows) -> torch.dtype:
    return getattr(torch, case.dtype)


def draw(case: Vector | Rows, gen: torch.Generator, *shape: int, scale: float = 1.0) -> Tensor:
    """Normally distributed numbers in the case's dtype."""
    return (scale * torch.randn(shape, generator=gen)).to(dtype_of(case))


def draw_dout(case: Graded, gen: torch.Generator) -> Tensor:
    """The gradient that comes in, as it lies in memory."""
    shape = (case.n_cols, case.n_rows) if case.dout_by_columns else (case.n_rows, case.n_cols)
    return draw(case, gen, *shape)


def dout_of(case: Graded, tree: Tree) -> Tensor:
    """The gradient that comes in: (n_rows, n_cols), of whatever strides."""
    return tree["dout"].t() if case.dout_by_columns else tree["dout"]


def kept_besides(out: Tensor, *inputs: Tensor) -> int:
    """The bytes that an autograd Function keeps for its backward pass beyond its inputs, on ctx in whatever way."""
    node = out.grad_fn
    held = [*getattr(node, "saved_tensors", ()), *getattr(node, "__dict__", {}).values()]
    storages = {one.untyped_storage().data_ptr(): one.nbytes for one in held if isinstance(one, Tensor)}
    given = {one.untyped_storage().data_ptr() for one in inputs}
    return sum(n_bytes for address, n_bytes in storages.items() if address not in given)
