"""Lab 13: what a student is told whose gradients of attention are wrong or cost too much, the specific first."""

from __future__ import annotations

from collections import Counter

from labkit.exercises.lab13.flash_backward import Backward
from labkit.oracles.kernels import NO_OTHER
from labkit.oracles.lab13.backward_bytes import load_bytes, queries_read, store_bytes
from labkit.oracles.lab13.backward_mistakes import (
    factor_not_transposed,
    keys_past_the_last,
    lse_of_the_first_head,
    negative,
    other_factor,
    other_row_sums,
    overflowed,
    returned_in_another_order,
    row_sums_after_the_product,
    row_sums_of_a_tile,
    scaled,
    softmax_of_a_tile,
    to_the_base_two,
    without_row_sums,
)
from labkit.oracles.lab13.backward_played import GRADIENTS, is_right
from labkit.oracles.lab13.backward_tiles import (
    causal_ignored,
    heads_mixed_up,
    last_tile_alone,
    leaves_out_the_last_block,
    leaves_out_tiles,
    mask_is_transposed,
    misses_itself,
    on_the_other_side,
    programs_of_the_other_blocks,
    sees_the_next,
    stores_past_its_rows,
    too_few_programs,
    unmasked,
)
from labkit.spec import CaseRun, Hint


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
    """More is loaded than allowed, and one kernel loads three tensors for each block of keys: q, dout and one more."""
    case = run.case
    in_each = f": {case.n_bytes // case.seq * queries_read(case):,} bytes"
    kernels = Counter(line.split()[0] for line in run.held["load_bytes"] if line.endswith(in_each))
    return all_right(run) and run.measured["load_bytes"] > load_bytes(run) and max(kernels.values(), default=0) > 2


FORGOTTEN = "lacks the scale: S = scale * Q K^T, so the derivative has the factor 1 / sqrt(d_head) once more."

TWICE = "has the scale 1 / sqrt(d_head) once too often: multiply by it once, in the loop or after it."


HINTS = (
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
        "The row sum is a different quantity: D is the sum, not the mean, of the products out * dout over a query's "
        "row, and it is subtracted.",
    ),
    Hint(
        lambda run: scaled("dq", -1)(run) and scaled("dk", -1)(run),
        "dq and dk lack the scale: S = scale * Q K^T, so both derivatives have the factor 1 / sqrt(d_head) once more.",
    ),
    Hint(scaled("dq", -1), f"dq {FORGOTTEN}"),
    Hint(scaled("dk", -1), f"dk {FORGOTTEN}"),
    Hint(scaled("dq", 1), f"dq {TWICE}"),
    Hint(scaled("dk", 1), f"dk {TWICE} Was q scaled before?"),
    Hint(scaled("dv", 1), "dv was scaled as well: out = p v has no scale in it, so dv = p^T dout has none."),
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
        "In the tile on the diagonal every query takes part for every key: mask p inside the tile, too. lse says "
        "nothing about keys that the query did not see.",
    ),
    Hint(
        causal_ignored,
        "`causal` makes no difference: where it is False every query sees every key, and where it is True only "
        "those up to its own.",
    ),
)
