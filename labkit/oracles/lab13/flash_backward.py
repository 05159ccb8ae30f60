"""Lab 13: what is true of the gradients of attention, and what the usual mistakes look like.

That no matrix of seq x seq is written is held by bytes: one that nobody writes or reads costs no memory worth the name.
Gradients may come from a kernel for each side, or from one for the keys that adds to dq by atomics.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab13.flash_backward import Backward
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import BY_KERNELS, SAFE, at_full_size, compiled
from labkit.oracles.lab13.backward_bytes import (
    SPILLED_BYTES,
    atomic_bytes,
    flops_on_matrix_units,
    least_loaded,
    load_bytes,
    spilled_bytes,
    store_bytes,
)
from labkit.oracles.lab13.backward_hints import HINTS
from labkit.oracles.lab13.backward_mistakes import nearly
from labkit.oracles.lab13.backward_played import GRADIENTS, is_right, wrong_rows
from labkit.spec import Budget, CaseRun, Hint, Oracle, Tolerance


def expected(run: CaseRun[Backward]) -> dict:
    """By PyTorch in float64, rounded at the end."""
    q, k, v = (run.tree[name].double().requires_grad_() for name in "qkv")
    out = F.scaled_dot_product_attention(q, k, v, is_causal=run.case.causal)
    found = torch.autograd.grad(out, (q, k, v), run.tree["dout"].double())
    return {name: one.to(run.tree["q"].dtype) for name, one in zip(GRADIENTS, found)}


def tolerances(run: CaseRun[Backward]) -> Tolerance:
    """What the first column is off by: there a gradient is a difference of large numbers."""
    if run.case.dtype == "float32":
        return Tolerance(rtol=2e-4, atol=2e-3)
    return Tolerance(rtol=2 * torch.finfo(torch.float16).eps, atol=3e-2)


def products_keep_their_digits(run: CaseRun[Backward]) -> str | None:
    """All columns but the first have numbers near 1, and are held to more of their digits."""
    allowed = Tolerance(rtol=2e-4, atol=2e-4) if run.case.dtype == "float32" else Tolerance(rtol=2e-3, atol=3e-3)
    for name in GRADIENTS:
        right, got = (one[name].double()[..., 1:] for one in (run.expected, run.got))
        off = (got - right).abs() - allowed.rtol * right.abs()
        if off.max() > allowed.atol:
            at = tuple(int(one) for one in torch.unravel_index(off.argmax(), off.shape))
            place = f"{name}[{at[0]}, {at[1]}, {at[2] + 1}]"
            return f"{place} is {got[at]:.6g}, where all digits make {right[at]:.6g}"
    return None


NEARLY = (
    "The gradients are nearly right. Sum up in float32, round to float16 only what `tl.dot` takes and what is stored, "
    'and give every `tl.dot` input_precision="ieee": without it float32 factors are rounded to tf32.'
)

products_keep_their_digits.hint = NEARLY


def lacks_digits(run: CaseRun[Backward]) -> bool:
    """Nearly right, but not within the tolerance."""
    return nearly(run) and compare(run.expected, run.got, tolerances(run)) is not None


def how_far_off(run: CaseRun[Backward]) -> str:
    """ "dv is right. dk is wrong for 20 of 75 keys of head 0, the first of them key 3." """
    fine = [name for name in GRADIENTS if is_right(run, name)]
    said = [f"{' and '.join(fine)} {'are' if len(fine) > 1 else 'is'} right."] if fine else []
    for name in GRADIENTS:
        if name in fine:
            continue
        bad, what = wrong_rows(run, name), "queries" if name == "dq" else "keys"
        head = int(bad.any(-1).nonzero()[0])
        first = int(bad[head].nonzero()[0])
        count = f"{int(bad[head].sum())} of {run.case.seq} {what} of head {head}"
        said.append(f"{name} is wrong for {count}, the first of them number {first}.")
    return " ".join(said)


FLASH_BACKWARD = Oracle(
    id="13-flash-backward",
    expect=expected,
    tolerance=tolerances,
    judge=(inputs_untouched, products_keep_their_digits),
    budgets=(
        *SAFE,
        BY_KERNELS,
        Budget(
            "store_bytes",
            store_bytes,
            "More is written than three gradients and one number for each query. The scores, p and ds must not leave "
            "the registers: compute them again, tile by tile.",
        ),
        Budget(
            "load_bytes",
            load_bytes,
            "More is loaded than blocks of block_m and block_n take: a program loads its own rows once, and of the "
            "others only tiles that its rows see or are seen from.",
        ),
        Budget(
            "load_bytes",
            least_loaded,
            "Blocks of block_m queries and block_n keys load more than this: take block_m and block_n as they are "
            "given.",
            at_least=True,
        ),
        Budget(
            "atomic_bytes",
            atomic_bytes,
            "More goes through atomics than dq, once for each block of keys: a program of keys holds its dk and dv "
            "until its loop is done.",
        ),
        Budget("launches", 3, "Three launches are enough: the row sums, dq, and dk with dv."),
        Budget(
            "matrix_flops",
            flops_on_matrix_units,
            "float16 products do not run on the tensor cores: leave q, k, v and dout in their dtype, and cast p and ds "
            "to it before `tl.dot`.",
            at_least=True,
        ),
        *compiled(spills=spilled_bytes),
    ),
    full_size=(
        *at_full_size(SPILLED_BYTES),
        Budget(
            "block_bytes",
            lambda run: 4 * run.case.block_m * run.case.block_n,
            "No tile of scores is as large as block_m x block_n: take block_m and block_n as they are given.",
            at_least=True,
        ),
    ),
    fact=how_far_off,
    axis="head sizes, blocks that are wider than high, and lengths that are not causal",
    call=lambda run: as_call(
        "attention_backward",
        *(run.tree[name] for name in ("q", "k", "v", "out", "lse", "dout")),
        causal=run.case.causal,
        block_m=run.case.block_m,
        block_n=run.case.block_n,
    ),
    diagnose=(*HINTS, Hint(lacks_digits, NEARLY)),
)
