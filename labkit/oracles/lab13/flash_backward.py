"""Lab 13: what is true of the gradients of attention, and what the usual mistakes look like.

That no matrix of seq x seq is written is held by bytes: one that nobody writes or reads costs no memory worth the name.
Gradients may come from a kernel for each side, or from one for the keys that adds to dq by atomics.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab13.flash_backward import Backward
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import BY_KERNELS, NO_OTHER, SAFE, at_full_size, compiled
from labkit.oracles.lab13.backward_mistakes import (
    GRADIENTS,
    causal_ignored,
    factor_not_transposed,
    heads_mixed_up,
    is_right,
    keys_past_the_last,
    last_tile_alone,
    leaves_out_the_last_block,
    leaves_out_tiles,
    lse_of_the_first_head,
    mask_is_transposed,
    misses_itself,
    nearly,
    negative,
    on_the_other_side,
    other_factor,
    other_row_sums,
    overflowed,
    programs_of_the_other_blocks,
    returned_in_another_order,
    row_sums_after_the_product,
    row_sums_of_a_tile,
    scaled,
    sees_the_next,
    softmax_of_a_tile,
    stores_past_its_rows,
    to_the_base_two,
    too_few_programs,
    unmasked,
    without_row_sums,
    wrong_rows,
)
from labkit.oracles.lab13.flash_attention import keys_read
from labkit.spec import Budget, CaseRun, Hint, Oracle, Tolerance

STATISTIC_BYTES = 4
"""Of the logarithm of a sum, and of a row sum."""
SPILLED_BYTES = 32
"""Per thread: two gradients and three tiles of float32 come close to what a thread can have."""
N_PRODUCTS = 5
"""The scores, dp, dv, dk and dq: two kernels make the first two twice."""


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


def queries_read(case: Backward) -> int:
    """The queries that all blocks of keys of one head load: for each block those from the one that sees it first."""
    starts = range(0, case.seq, case.block_n)
    if not case.causal:
        return len(starts) * case.seq
    return sum(case.seq - start // case.block_m * case.block_m for start in starts)


def keys_read_back(case: Backward) -> int:
    """The keys that all blocks of queries of one head load."""
    return keys_read(case) if case.causal else math.ceil(case.seq / case.block_m) * case.seq


def load_bytes(run: CaseRun[Backward]) -> int:
    """Each program its own rows, q and dout for each block of keys, k and v for each of queries; out and dout once."""
    case = run.case
    per_row = case.n_bytes // case.seq
    statistics = 2 * STATISTIC_BYTES * case.n_heads * (case.seq + queries_read(case))
    return per_row * (6 * case.seq + 2 * queries_read(case) + 2 * keys_read_back(case)) + statistics


def least_loaded(run: CaseRun[Backward]) -> int:
    """The same without what lies on the other side of the diagonal; by atomics, k and v once and nothing for dq."""
    case = run.case
    per_row = case.n_bytes // case.seq
    queries, keys = len(range(0, case.seq, case.block_n)) * case.seq, len(range(0, case.seq, case.block_m)) * case.seq
    if case.causal:
        queries = sum(case.seq - start for start in range(0, case.seq, case.block_n))
        keys = sum(min(start + case.block_m, case.seq) for start in range(0, case.seq, case.block_m))
    if run.measured["atomic_bytes"]:
        return per_row * (3 * case.seq + 2 * queries)
    return per_row * (5 * case.seq + 2 * queries + 2 * keys)


def store_bytes(run: CaseRun[Backward]) -> int:
    """The gradients and two statistics of each query; by atomics also dq in float32 before they add to it."""
    case = run.case
    first = 4 * case.n_heads * case.seq * case.d_head if run.measured["atomic_bytes"] else 0
    return 3 * case.n_bytes + first + 2 * STATISTIC_BYTES * case.n_heads * case.seq


def atomic_bytes(run: CaseRun[Backward]) -> int:
    """dq in float32, for each block of keys."""
    return 4 * run.case.n_heads * run.case.d_head * queries_read(run.case)


def flops_on_matrix_units(run: CaseRun[Backward]) -> int:
    """Of five products, over the pairs that see each other; float32's in full precision are made elsewhere."""
    case = run.case
    n_pairs = case.seq * (case.seq + 1) // 2 if case.causal else case.seq**2
    return N_PRODUCTS * 2 * case.n_heads * n_pairs * case.d_head if case.dtype == "float16" else 0


def lacks_digits(run: CaseRun[Backward]) -> bool:
    """Nearly right, but not within the tolerance."""
    return nearly(run) and compare(run.expected, run.got, tolerances(run)) is not None


def spilled_bytes(run: CaseRun[Backward]) -> int:
    """Per thread. Exact float32 products hold factors and sums in registers, and nobody trains with them."""
    return SPILLED_BYTES if run.case.dtype == "float16" else 32 * SPILLED_BYTES


def all_right(run: CaseRun[Backward]) -> bool:
    return all(is_right(run, name) for name in GRADIENTS)


def races_in_right_values(run: CaseRun[Backward]) -> bool:
    return run.measured["races"] > 0 and all_right(run)


def statistics_by_wrong_offsets(run: CaseRun[Backward]) -> bool:
    """An access past the end of what has one number for each query."""
    n_elements = run.case.n_heads * run.case.seq
    return any(f"which has {n_elements} elements" in line for line in run.held.get("out_of_bounds", ()))


def filled_by_torch(run: CaseRun[Backward]) -> bool:
    """More is written than the gradients because zeros are, and there are no atomics that would add to them."""
    zeros = any(line.startswith(("torch.zero", "torch.full", "torch.new_zero")) for line in run.held["store_bytes"])
    return all_right(run) and run.measured["store_bytes"] > store_bytes(run) and zeros


def out_in_every_tile(run: CaseRun[Backward]) -> bool:
    """More is loaded, by what loading `out` for each block of keys takes."""
    case = run.case
    more = run.measured["load_bytes"] - load_bytes(run)
    return all_right(run) and 0 < more <= case.n_bytes // case.seq * queries_read(case)


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


FORGOTTEN = "lacks the scale: S = scale * Q K^T, so the derivative has the factor 1 / sqrt(d_head) once more."
TWICE = "has the scale 1 / sqrt(d_head) once too often: multiply by it once, in the loop or after it."

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
    diagnose=(
        NO_OTHER,
        Hint(
            races_in_right_values,
            "The values come out right because programs take turns here. On a GPU they run at the same time, and "
            "several load, change and store the same rows: what one adds, another overwrites. Give dq a kernel of its "
            "own, with a program for each block of queries, or add to it with tl.atomic_add.",
        ),
        Hint(
            statistics_by_wrong_offsets,
            "lse and the row sums have one number for each query: in them head h begins h * seq elements past the "
            "first, and in the other tensors h * seq * d_head.",
        ),
        Hint(
            stores_past_its_rows,
            "A program stores past its last row, over the first rows of the next head or past the end: mask the "
            "stores, too.",
        ),
        Hint(
            lambda run: run.measured["races"] > 0 and not all_right(run),
            "Two programs write the same elements, and the later one wins. Each block of each head has rows of its "
            "own: head h begins h * seq * d_head elements past the first, in lse and the row sums h * seq.",
        ),
        Hint(
            filled_by_torch,
            "A kernel writes over every element of the gradients, and zeros were written there before: make them with "
            "torch.empty_like.",
        ),
        Hint(
            out_in_every_tile,
            "Every tile loads a block of `out` to sum it up again. The row sums are the same for all keys: one kernel "
            "stores them, a number for each query, and the other one loads that.",
        ),
        Hint(
            returned_in_another_order,
            "All three gradients are there, in another order: return dq, dk, dv.",
        ),
        Hint(
            keys_past_the_last,
            "Rows of dq are NaN where lse is far below 0. Lanes past the last key have a score of 0, so exp(0 - lse) "
            "overflows, and infinity times 0 is NaN. Set such a lane with tl.where, keys < seq, instead of "
            "multiplying.",
        ),
        Hint(
            softmax_of_a_tile,
            "p was normalized within each tile. A query's sum goes over all of its keys, and lse holds it: "
            "p = exp(scores - lse).",
        ),
        Hint(
            overflowed,
            "exp overflows. The forward pass took lse of the scaled scores: p = exp(scale * q k^T - lse), with the "
            "scale and with the lse of the query's row.",
        ),
        Hint(
            too_few_programs,
            "Rows past the last whole block are not computed. Round the number of programs up, triton.cdiv(seq, "
            "block_m) for dq and triton.cdiv(seq, block_n) for dk and dv.",
        ),
        Hint(
            programs_of_the_other_blocks,
            "Rows past a certain one are never stored: dq takes triton.cdiv(seq, block_m) programs for each head, dk "
            "and dv take triton.cdiv(seq, block_n).",
        ),
        Hint(
            lse_of_the_first_head,
            "Heads past the first use the first one's lse or row sums: in both, head h begins h * seq elements past "
            "the first.",
        ),
        Hint(
            heads_mixed_up,
            "The first head is right and the others are not: head h begins h * seq * d_head elements past the first, "
            "in lse and the row sums h * seq.",
        ),
        Hint(
            without_row_sums,
            "The row sums were left out: ds = p * (dp - D), where D is the sum of out * dout over a query's row.",
        ),
        Hint(
            row_sums_after_the_product,
            "The row sum is subtracted from dp, before the product with p: ds = p * (dp - D), not p * dp - D.",
        ),
        Hint(
            row_sums_of_a_tile,
            "The row sum was taken over one tile of keys. It goes over all of a query's keys, which is why it comes "
            "from out: D = the sum of out * dout over the query's row.",
        ),
        Hint(
            other_row_sums,
            "The row sum is another one: D is the sum, not the mean, of the products out * dout over a query's row, "
            "and it is subtracted.",
        ),
        Hint(
            lambda run: scaled("dq", -1)(run) and scaled("dk", -1)(run),
            "dq and dk lack the scale: S = scale * Q K^T, so both derivatives have the factor 1 / sqrt(d_head) once "
            "more.",
        ),
        Hint(scaled("dq", -1), f"dq {FORGOTTEN}"),
        Hint(scaled("dk", -1), f"dk {FORGOTTEN}"),
        Hint(scaled("dq", 1), f"dq {TWICE}"),
        Hint(scaled("dk", 1), f"dk {TWICE} Was q scaled before?"),
        Hint(scaled("dv", 1), "dv was scaled, too: out = p v has no scale in it, so dv = p^T dout has none."),
        Hint(
            other_factor,
            "A gradient was made of the wrong factors: dv = p^T dout, dq = ds k, dk = ds^T q, where ds = p * (dp - D).",
        ),
        Hint(negative, "A gradient has the wrong sign: ds = p * (dp - D), and nothing else is subtracted."),
        Hint(
            to_the_base_two,
            "p is a power of two: lse is a natural logarithm, so take tl.exp, or multiply both scores and lse by "
            "log2(e) before tl.exp2.",
        ),
        Hint(
            factor_not_transposed,
            "In a square tile a factor can be taken the wrong way round: dp = dout v^T, dv = p^T dout and dk = ds^T q, "
            "each with a tl.trans.",
        ),
        Hint(
            last_tile_alone,
            "A gradient is that of the last tile alone: add to it in every step, dk += ... or tl.dot(..., acc=dk).",
        ),
        Hint(
            mask_is_transposed,
            "The causal mask is the other way round: a query sees the keys up to its own number, queries >= keys, in "
            "both kernels.",
        ),
        Hint(
            on_the_other_side,
            "A loop runs on the wrong side of the diagonal. The keys of a block are seen by the queries from that "
            "block on, to the end; a block of queries sees the keys from 0 up to it.",
        ),
        Hint(
            leaves_out_tiles,
            "A loop leaves tiles out. A block of keys begins at block * BLOCK_N, and the queries that see it at the "
            "block of queries with that number in it, block * BLOCK_N // BLOCK_M * BLOCK_M. A block of queries sees "
            "the keys before (block + 1) * BLOCK_M.",
        ),
        Hint(
            leaves_out_the_last_block,
            "A loop leaves out the last block, which is not whole: let it run up to seq, and mask the loads.",
        ),
        Hint(
            misses_itself,
            "A query sees its own key too: mask with queries >= keys, not with >.",
        ),
        Hint(
            sees_the_next,
            "A query sees the key right after it: the mask is off by one.",
        ),
        Hint(
            unmasked,
            "In the tile on the diagonal every query takes part for every key: mask p inside the tile, too. lse tells "
            "nothing of keys that the query did not see.",
        ),
        Hint(
            causal_ignored,
            "`causal` makes no difference: where it is False every query sees every key, and where it is True only "
            "those up to its own.",
        ),
        Hint(lacks_digits, NEARLY),
    ),
)
