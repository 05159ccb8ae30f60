"""Lab 13: what the backward pass of attention makes of any probabilities and their gradients, in float64.

The mistakes of `backward_tiles` and `backward_mistakes` are played with it, for both kernels at once. A student may
have made one in a single kernel, so each gradient may be the played one or the right one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import torch
from torch import Tensor

from labkit.exercises.lab13.flash_backward import Backward
from labkit.oracles.hints import once
from labkit.oracles.lab13.attention_mistakes import last_keys
from labkit.spec import CaseRun

GRADIENTS = ("dq", "dk", "dv")

Gradients = Mapping[str, Tensor]


@once
def right(run: CaseRun[Backward]) -> SimpleNamespace:
    """The tensors that were given and what lies between them and the gradients; p, dp, ds: (n_heads, seq, seq)."""
    found = SimpleNamespace(**{name: one.double() for name, one in run.tree.items()})
    found.scale = run.case.d_head**-0.5
    # Without a mask: exp of what a query does not see is no probability, and takes part where a mask is forgotten.
    found.unmasked = (found.q @ found.k.mT * found.scale - found.lse[..., None]).exp()
    rows, cols = places(run)
    found.seen = rows >= cols if run.case.causal else torch.ones_like(rows >= cols)
    found.p = found.unmasked * found.seen
    found.dp = found.dout @ found.v.mT
    found.row_sums = (found.out * found.dout).sum(-1, keepdim=True)
    found.ds = found.p * (found.dp - found.row_sums)
    return found


def places(run: CaseRun[Backward]) -> tuple[Tensor, Tensor]:
    """The numbers of the queries, (seq, 1), and of the keys, (1, seq)."""
    numbers = torch.arange(run.case.seq)
    return numbers[:, None], numbers[None, :]


def walked(run: CaseRun[Backward]) -> tuple[Tensor, Tensor]:
    """(by a program of queries, by a program of keys): which pairs lie in tiles that it goes over, (seq, seq) each."""
    case, (rows, cols) = run.case, places(run)
    if not case.causal:
        every = torch.ones(case.seq, case.seq, dtype=torch.bool)
        return every, every
    ends = -(-last_keys(case)[:, None] // case.block_n) * case.block_n
    first = cols // case.block_n * case.block_n // case.block_m * case.block_m
    return cols < ends, rows >= first


def gradients(
    run: CaseRun[Backward],
    p: Tensor | None = None,
    ds: Tensor | None = None,
    p_of_keys: Tensor | None = None,
    ds_of_keys: Tensor | None = None,
) -> dict[str, Tensor]:
    """The three products of a p and a ds; *_of_keys: where the kernel of dk and dv has others than that of dq."""
    known = right(run)
    p, ds = known.p if p is None else p, known.ds if ds is None else ds
    p_of_keys, ds_of_keys = p if p_of_keys is None else p_of_keys, ds if ds_of_keys is None else ds_of_keys
    return {
        "dq": ds @ known.k * known.scale,
        "dk": ds_of_keys.mT @ known.q * known.scale,
        "dv": p_of_keys.mT @ known.dout,
    }


def close(run: CaseRun[Backward], got: Tensor, want: Tensor) -> Tensor:
    """Elementwise, in proportion to the largest of each column; in the first one large numbers cancel."""
    got, want = got.double(), want.double()
    rtol, least = (5e-3, 2e-3) if run.case.dtype == "float32" else (1e-2, 2e-2)
    atol = torch.full((run.case.d_head,), least, dtype=torch.double)
    atol[0] *= 8
    largest = want.nan_to_num(0.0).abs().amax((0, 1))
    return ((got - want).abs() <= rtol * (want.abs() + largest) + atol) | (got.isnan() & want.isnan())


@once
def is_right(run: CaseRun[Backward], name: str) -> bool:
    return bool(close(run, run.got[name], run.expected[name]).all())


def wrong_rows(run: CaseRun[Backward], name: str) -> Tensor:
    """Which queries or keys have a wrong gradient, (n_heads, seq)."""
    return ~close(run, run.got[name], run.expected[name]).all(-1)


def made_by(run: CaseRun[Backward], wrong: Gradients) -> bool:
    """Each gradient is right or as the mistake makes it, and one of them is not right."""
    off = [name for name in GRADIENTS if not is_right(run, name)]
    return bool(off) and all(name in wrong and bool(close(run, run.got[name], wrong[name]).all()) for name in off)
