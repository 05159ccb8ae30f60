"""Lab 13: what is true of causal attention without the scores, and what the usual mistakes look like."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from labkit.compare import inputs_untouched
from labkit.exercises.lab13.flash_attention import ALIKE, Attention
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import BY_KERNELS, NO_OTHER, SAFE, at_full_size, compiled
from labkit.oracles.lab13.attention_mistakes import (
    divides_by_a_part,
    grid_axes_swapped,
    heads_mixed_up,
    heads_overlap,
    in_blocks,
    last_block_alone,
    loop_ends_too_early,
    low_rows_alone,
    mask_is_transposed,
    masked_too_late,
    misses_itself,
    nan_where_blind,
    near,
    nearly,
    never_divides,
    not_masked,
    overflowed,
    rescales_too_little,
    rounded_on_the_way,
    rounded_to_float16,
    scaled_by,
    sees_its_whole_tile,
    sees_the_next,
    tolerances,
    writes_into_the_next_head,
    wrong_from,
)
from labkit.spec import Budget, CaseRun, Hint, Oracle

PER_QUERY_BYTES = 8
"""For each query, a maximum and a sum may be kept: a backward pass would need their combination."""


def expected(run: CaseRun[Attention]) -> dict:
    """By PyTorch in float64, rounded at the end."""
    q, k, v = (run.tree[name].double() for name in "qkv")
    return {"out": F.scaled_dot_product_attention(q, k, v, is_causal=True).to(run.tree["q"].dtype)}


def sums_keep_their_digits(run: CaseRun) -> str | None:
    """The queries that weigh all keys alike have no rounded weights, so that only the store rounds their result."""
    if run.case.dtype != "float16":
        return None
    eps = torch.finfo(torch.float16).eps
    right, got = (out[:, ALIKE].double() for out in (run.expected["out"], run.got["out"]))
    off = (got - right).abs() - eps * right.abs()
    if off.max() <= eps / 8:
        return None
    at = tuple(torch.unravel_index(off.argmax(), off.shape))
    return f"the mean of all values so far is {right[at]:.6g}, and a query that weighs all alike has {got[at]:.6g}"


sums_keep_their_digits.hint = (
    "The sum or the output was rounded to float16 on the way: hold both in float32 until the store."
)


def keys_read(case: Attention) -> int:
    """The keys that all blocks of queries of one head load: for each block those up to its last query."""
    ends = [min(end, case.seq) for end in range(case.block_m, case.seq + case.block_m, case.block_m)]
    return sum(min(math.ceil(end / case.block_n) * case.block_n, case.seq) for end in ends)


def load_bytes(run: CaseRun[Attention]) -> int:
    """The queries once; keys and values as often as there are blocks of queries that see them."""
    case = run.case
    return case.n_bytes // case.seq * (case.seq + 2 * keys_read(case))


def least_loaded(run: CaseRun[Attention]) -> int:
    """The same, but of keys only those up to the last query of a block."""
    case = run.case
    ends = [min(end, case.seq) for end in range(case.block_m, case.seq + case.block_m, case.block_m)]
    return case.n_bytes // case.seq * (case.seq + 2 * sum(ends))


def store_bytes(run: CaseRun[Attention]) -> int:
    """The output once, and a few statistics of each query."""
    return run.case.n_bytes + PER_QUERY_BYTES * run.case.n_heads * run.case.seq


def flops_on_matrix_units(run: CaseRun[Attention]) -> int:
    """Of both products, over the keys that each query sees; float32's in full precision are made elsewhere."""
    case = run.case
    n_pairs = case.seq * (case.seq + 1) // 2
    return 2 * 2 * case.n_heads * n_pairs * case.d_head if case.dtype == "float16" else 0


FLASH_ATTENTION = Oracle(
    id="13-flash-attention",
    expect=expected,
    tolerance=tolerances,
    judge=(inputs_untouched, sums_keep_their_digits),
    budgets=(
        *SAFE,
        BY_KERNELS,
        Budget(
            "store_bytes",
            store_bytes,
            "More is written than the result. The scores must not leave the registers: go over the keys in blocks, "
            "with a running maximum and sum.",
        ),
        Budget(
            "load_bytes",
            load_bytes,
            "More keys and values are loaded than blocks of block_m and block_n take: a program loads its queries "
            "once, and its loop ends with the block that holds its last query.",
        ),
        Budget(
            "load_bytes",
            least_loaded,
            "Blocks of block_m queries load more keys than this: take block_m and block_n as they are given.",
            at_least=True,
        ),
        Budget("atomic_bytes", 0, "No atomics are needed: each program has its own rows of the result."),
        Budget("launches", 1, "All of it fits into one launch."),
        Budget(
            "matrix_flops",
            flops_on_matrix_units,
            "float16 products do not run on the tensor cores: leave q, k and v in their dtype, and cast the weights "
            "to that of v before the second `tl.dot`.",
            at_least=True,
        ),
        *compiled(),
    ),
    full_size=(
        *at_full_size(),
        Budget(
            "block_bytes",
            lambda run: 4 * run.case.block_m * run.case.block_n,
            "No tile of scores is as large as block_m x block_n: take block_m and block_n as they are given.",
            at_least=True,
        ),
    ),
    call=lambda run: as_call(
        "attention", *(run.tree[name] for name in "qkv"), block_m=run.case.block_m, block_n=run.case.block_n
    ),
    diagnose=(
        NO_OTHER,
        Hint(
            sees_its_whole_tile,
            "Every query sees all keys that its program loads. The end of the loop leaves out whole tiles; the keys "
            "after a query have to be masked inside the tile on the diagonal, too, with -inf.",
        ),
        Hint(
            loop_ends_too_early,
            "The loop ends before the last queries of a block have seen their keys: its end is counted in blocks of "
            "queries, (block + 1) * BLOCK_M, and not of keys.",
        ),
        Hint(
            mask_is_transposed,
            "The mask is the other way round: a query sees the keys up to its own number, queries >= keys.",
        ),
        Hint(
            grid_axes_swapped,
            "Blocks of queries past the first ones are never stored: the grid has its two axes in the other order "
            "than tl.program_id.",
        ),
        Hint(
            heads_overlap,
            "A head reads and writes rows of the one before it: head h begins h * seq * d_head elements past the "
            "first, in all four tensors.",
        ),
        Hint(
            masked_too_late,
            "Some rows whose scores are far below 0 are NaN: lanes past the last key have a score of 0 and took part "
            "in the maximum. Mask the scores before the maximum is taken, not the weights after it.",
        ),
        Hint(
            lambda run: bool(run.got["out"][:, 0].isnan().any() and not run.got["out"][:, 1:].isnan().any()),
            "The first row is NaN: a query sees its own key too. Mask with queries >= keys, not with >.",
        ),
        Hint(
            # Before the NaN below: what is never written may hold anything.
            lambda run: wrong_from(run, run.case.seq // run.case.block_m * run.case.block_m),
            "The queries past the last whole block are wrong, and no others. Round the number of programs up: "
            "triton.cdiv(seq, block_m).",
        ),
        Hint(
            heads_mixed_up,
            "Heads past the first are not computed: head h begins h * seq * d_head elements past the first, in all "
            "four tensors.",
        ),
        Hint(
            last_block_alone,
            "Each row is that of its last block of keys alone. At the end of the loop's body, the new maximum has to "
            "become the old one.",
        ),
        Hint(
            overflowed,
            "Everything is NaN: exp overflows because the scores are large. Subtract the row's running maximum first,"
            " and rescale by exp(old - new).",
        ),
        Hint(
            lambda run: low_rows_alone(run) and bool(run.got["out"].isnan().any()),
            "Rows whose scores are far below 0 are NaN: each row's running maximum has to be its own, and to start at "
            "-inf, not at 0.",
        ),
        Hint(
            low_rows_alone,
            "Rows whose scores are far below 0 are wrong: a masked score of 0 is larger than theirs. Mask with -inf.",
        ),
        Hint(
            nan_where_blind,
            "A row that sees no key of some tile is NaN: its maximum there is -inf, and -inf - (-inf) is NaN. Take "
            "the running maximum, tl.maximum(top, ...), and begin with block 0, or subtract 0 there.",
        ),
        Hint(
            writes_into_the_next_head,
            "The first rows of the second head are wrong: the program with the end of the first one writes over them. "
            "Mask the store, too.",
        ),
        Hint(
            lambda run: not nearly(run) and misses_itself(run),
            "A query sees its own key too: mask with queries >= keys, not with >.",
        ),
        Hint(
            lambda run: not nearly(run) and not_masked(run),
            "Queries see keys that come after them: where the key's number is larger, the score is -inf.",
        ),
        Hint(
            lambda run: not nearly(run) and sees_the_next(run),
            "A query sees the key right after it: the mask is off by one.",
        ),
        Hint(
            lambda run: not nearly(run) and scaled_by(run, 1.0, run.case.d_head**0.5),
            "The scores are scaled wrongly: multiply q k^T by 1 / sqrt(d_head), before the maximum is taken.",
        ),
        Hint(
            lambda run: not nearly(run) and scaled_by(run, 1 / run.case.d_head),
            "The scores are scaled wrongly: they were multiplied by 1 / d_head, which is 1 / sqrt(d_head) twice.",
        ),
        Hint(
            lambda run: not nearly(run) and near(run, in_blocks(run, divide_each=True)),
            "The output is divided by the sum in every step, and the next step rescales what is already divided. "
            "Divide once, after the loop.",
        ),
        Hint(
            lambda run: not nearly(run) and rescales_too_little(run),
            "When the maximum of a row rises, what was summed up before is too large: multiply both the sum and the "
            "output by exp(old - new).",
        ),
        Hint(
            lambda run: not nearly(run) and never_divides(run),
            "The output is never divided: after the loop, divide each row by its sum of exponentials.",
        ),
        Hint(
            lambda run: not nearly(run) and divides_by_a_part(run),
            "Each row is too large by a factor of its own: divide by the sum over all blocks, not by that of the last"
            " one.",
        ),
        Hint(
            rounded_to_float16,
            "The values are nearly right: hold scores, maximum, sum and output in float32, and round to float16 only "
            "the weights for `tl.dot` and the result.",
        ),
        Hint(
            lambda run: any(wrong_from(run, first) for first in (run.case.block_m, run.case.block_n)),
            "The first block is right and a later one is not: go over all keys up to the block's last query, and load "
            "those of block j from row j * block_n on.",
        ),
        Hint(
            rounded_on_the_way,
            'The values are nearly right: `tl.dot` rounds float32 to tf32 unless it gets input_precision="ieee".',
        ),
    ),
)
