"""Lab 97, second half."""

from __future__ import annotations

import torch

from labkit.oracles.kernels import SAFE, at_full_size, compiled, moved
from labkit.spec import Oracle, Tolerance

CLOSE = Tolerance(rtol=1e-5, atol=1e-5)


def _silu(run):
    x = run.tree["x"].clone().requires_grad_()
    out = torch.nn.functional.silu(x)
    out.backward(run.tree["y"])
    return {"out": out.detach(), "grad": x.grad}


ADD = Oracle(
    id="97-add",
    expect=lambda run: {"out": run.tree["x"] + run.tree["y"]},
    budgets=(*moved(load=lambda run: 8 * run.case.n, store=lambda run: 4 * run.case.n, launches=1), *SAFE),
)
SOFTMAX = Oracle(
    id="97-softmax",
    expect=lambda run: {"out": torch.softmax(run.tree["x"], -1)},
    tolerance=CLOSE,
    budgets=(
        *moved(load=lambda run: run.tree["x"].nbytes, store=lambda run: run.tree["x"].nbytes, launches=1),
        *SAFE,
        *compiled(vector_width=lambda run: 16 if run.case.n_cols % 16 == 0 else 4),
    ),
    full_size=at_full_size(),
)
TOTAL = Oracle(
    id="97-total",
    expect=lambda run: {"out": run.tree["x"].sum()},
    tolerance=Tolerance(rtol=1e-4, atol=1e-3),
    # Each of the blocks of 128 leaves a partial sum.
    budgets=(*moved(load=lambda run: 4 * run.case.n + 200, store=200), *SAFE),
)
SILU = Oracle(
    id="97-silu",
    expect=_silu,
    tolerance=CLOSE,
    budgets=(*moved(load=lambda run: 12 * run.case.n, store=lambda run: 8 * run.case.n, launches=2), *SAFE),
)
PRODUCT = Oracle(
    id="97-product",
    expect=lambda run: {"out": run.tree["a"].float() @ run.tree["b"].float()},
    tolerance=CLOSE,
    budgets=(
        *moved(load=lambda run: 4 * run.case.n**2, store=lambda run: 4 * run.case.n**2, launches=1),
        *SAFE,
        *compiled(matrix_flops=lambda run: 2 * run.case.n**3),
    ),
)
