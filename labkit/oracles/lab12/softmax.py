"""Lab 12: what is true of softmax in one pass, and what the usual mistakes look like."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab12.shapes import Rows
from labkit.oracles.kernels import SAFE, compiled, moved
from labkit.oracles.lab12.close import rounded_once
from labkit.spec import Hint, Oracle


def expected(case: Rows, tree: dict) -> dict:
    x = tree["x"][:, : case.n_cols]
    return {"out": torch.softmax(x.float(), -1).to(x.dtype)}


def sums(got: dict) -> torch.Tensor:
    """The sum of each row, which should be 1."""
    return got["out"].double().sum(-1)


def other_rows(case: Rows, tree: dict, got: dict) -> bool:
    """The first row is right and the others, in a matrix with gaps, are not."""
    right, out = expected(case, tree)["out"], got["out"]
    first, all_rows = (torch.allclose(out[:n], right[:n], rtol=1e-2, atol=1e-3) for n in (1, None))
    return case.gap > 0 and first and not all_rows


def nearly(case: Rows, tree: dict, got: dict) -> bool:
    """Off by more than one rounding of the result, and not by much."""
    right, out = expected(case, tree)["out"].float(), got["out"].float()
    close = torch.allclose(out, right, rtol=0.1, atol=1e-3)
    return case.dtype != "float32" and close and not torch.allclose(out, right, rtol=2e-3, atol=1e-6)


SOFTMAX = Oracle(
    id="12-softmax",
    expect=expected,
    tolerance=rounded_once,
    judge=(inputs_untouched,),
    budgets=(
        *SAFE,
        *moved(load=lambda case, tree: case.n_bytes, store=lambda case, tree: case.n_bytes, launches=1),
        *compiled(vector_width=lambda case, tree: 8 if case.n_cols % 1024 == 0 else 0),
    ),
    diagnose=(
        Hint(
            lambda case, tree, got: bool(got["out"][0].isnan().any() and not got["out"][3::2].isnan().any()),
            "exp overflows where the numbers are large. Subtract the row's maximum first: the factor that this brings "
            "in cancels.",
        ),
        Hint(
            nearly,
            "The values are nearly right, but rounded on the way. Convert what you load with .to(tl.float32), compute, "
            "and let the store round once.",
        ),
        Hint(
            other_rows,
            "The first row is right and those below are not: rows need not lie n_cols elements apart. Hand x.stride(0) "
            "to the kernel for loading, and out.stride(0) for storing.",
        ),
        Hint(
            lambda case, tree, got: bool((sums(got) < 0.99).any() and (sums(got) >= 0).all()),
            "The rows sum up to less than 1: lanes behind the end of the row take part in the sum. Load them as "
            "-float('inf'), whose exp is 0.",
        ),
        Hint(
            lambda case, tree, got: bool((sums(got) > 1.01).any()),
            "The rows sum up to more than 1: divide the exponentials by their sum over the row.",
        ),
    ),
)
