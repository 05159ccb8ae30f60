"""Lab 97, second half."""

from __future__ import annotations

import torch

from labkit.oracles.kernels import SAFE, compiled, moved
from labkit.spec import Oracle, Tolerance

CLOSE = Tolerance(rtol=1e-5, atol=1e-5)


def _silu(case, tree):
    x = tree["x"].clone().requires_grad_()
    out = torch.nn.functional.silu(x)
    out.backward(tree["y"])
    return {"out": out.detach(), "grad": x.grad}


ADD = Oracle(
    id="97-add",
    expect=lambda case, tree: {"out": tree["x"] + tree["y"]},
    budgets=(*moved(load=lambda case, tree: 8 * case.n, store=lambda case, tree: 4 * case.n, launches=1), *SAFE),
)
SOFTMAX = Oracle(
    id="97-softmax",
    expect=lambda case, tree: {"out": torch.softmax(tree["x"], -1)},
    tolerance=CLOSE,
    budgets=(
        *moved(load=lambda case, tree: tree["x"].nbytes, store=lambda case, tree: tree["x"].nbytes, launches=1),
        *SAFE,
        *compiled(vector_width=lambda case, tree: 16 if case.n_cols % 16 == 0 else 4),
    ),
)
TOTAL = Oracle(
    id="97-total",
    expect=lambda case, tree: {"out": tree["x"].sum()},
    tolerance=Tolerance(rtol=1e-4, atol=1e-3),
    # Each of the blocks of 128 leaves a partial sum.
    budgets=(*moved(load=lambda case, tree: 4 * case.n + 200, store=200), *SAFE),
)
SILU = Oracle(
    id="97-silu",
    expect=_silu,
    tolerance=CLOSE,
    budgets=(*moved(load=lambda case, tree: 12 * case.n, store=lambda case, tree: 8 * case.n, launches=2), *SAFE),
)
PRODUCT = Oracle(
    id="97-product",
    expect=lambda case, tree: {"out": tree["a"].float() @ tree["b"].float()},
    tolerance=CLOSE,
    budgets=(
        *moved(load=lambda case, tree: 4 * case.n**2, store=lambda case, tree: 4 * case.n**2, launches=1),
        *SAFE,
        *compiled(matrix_flops=lambda case, tree: 2 * case.n**3),
    ),
)
