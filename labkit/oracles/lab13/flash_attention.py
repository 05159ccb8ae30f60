"""Lab 13: what is true of causal attention without the scores, and what the usual mistakes look like."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import inputs_untouched
from labkit.exercises.lab13.flash_attention import ALIKE, Attention
from labkit.oracles.kernels import BY_KERNELS, NO_OTHER, SAFE, at_full_size, compiled
from labkit.spec import Budget, CaseRun, Hint, Oracle, Tolerance

PER_QUERY_BYTES = 8
"""For each query, a maximum and a sum may be kept: a backward pass would need their combination."""


def expected(run: CaseRun[Attention]) -> dict:
    """By PyTorch in float64, rounded at the end."""
    q, k, v = (run.tree[name].double() for name in "qkv")
    return {"out": F.scaled_dot_product_attention(q, k, v, is_causal=True).to(run.tree["q"].dtype)}


def tolerances(run: CaseRun[Attention]) -> Tolerance:
    """float32: scores near 150 are off by 1e-5 each. float16: the weights are rounded, and the result once more."""
    if run.case.dtype == "float32":
        return Tolerance(rtol=2e-4, atol=2e-4)
    eps = torch.finfo(run.tree["q"].dtype).eps
    return Tolerance(rtol=2 * eps, atol=2 * eps)


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


def store_bytes(run: CaseRun[Attention]) -> int:
    """The output once, and a few statistics of each query."""
    return run.case.n_bytes + PER_QUERY_BYTES * run.case.n_heads * run.case.seq


# What follows is asked of wrong values alone.


def scores(run: CaseRun[Attention], scale: float | None = None) -> Tensor:
    """(n_heads, seq, seq) in float64, -inf above the diagonal."""
    factor = run.case.d_head**-0.5 if scale is None else scale
    every = run.tree["q"].double() @ run.tree["k"].double().transpose(1, 2) * factor
    return every.masked_fill(above(run.case), -float("inf"))


def above(case: Attention, diagonal: int = 1) -> Tensor:
    return torch.ones(case.seq, case.seq, dtype=torch.bool).triu(diagonal)


def attended(run: CaseRun[Attention], masked_scores: Tensor) -> Tensor:
    return masked_scores.softmax(-1) @ run.tree["v"].double()


def flops_on_matrix_units(run: CaseRun[Attention]) -> int:
    """Of both products, over the keys that each query sees; float32's in full precision are made elsewhere."""
    case = run.case
    n_pairs = case.seq * (case.seq + 1) // 2
    return 2 * 2 * case.n_heads * n_pairs * case.d_head if case.dtype == "float16" else 0


def near(run: CaseRun[Attention], wrong: Tensor, rows: slice = slice(None)) -> bool:
    """Whether the result is this (wrong) one, more or less."""
    rtol = 2e-3 if run.case.dtype == "float32" else 1e-2
    return torch.allclose(run.got["out"][:, rows].double(), wrong[:, rows], rtol=rtol, atol=rtol)


def in_blocks(run: CaseRun[Attention], rescale_out: bool, rescale_total: bool) -> Tensor:
    """The online softmax over blocks of keys, with or without making up for a maximum that rose."""
    case = run.case
    every, values = scores(run), run.tree["v"].double()
    top = torch.full_like(every[..., :1], -float("inf"))
    total, out = torch.zeros_like(top), torch.zeros_like(values)
    for start in range(0, case.seq, case.block_n):
        block = every[..., start : start + case.block_n]
        new_top = torch.maximum(top, block.amax(-1, keepdim=True))
        shrink, weights = (top - new_top).exp(), (block - new_top).exp()
        total = total * (shrink if rescale_total else 1) + weights.sum(-1, keepdim=True)
        out = out * (shrink if rescale_out else 1) + weights @ values[:, start : start + case.block_n]
        top = new_top
    return out / total


def rescales_too_little(run: CaseRun[Attention]) -> bool:
    ways = ((False, False), (False, True), (True, False))
    return any(near(run, in_blocks(run, *way)) for way in ways)


def never_divides(run: CaseRun[Attention]) -> bool:
    every = scores(run)
    return near(run, (every - every.amax(-1, keepdim=True)).exp() @ run.tree["v"].double())


def divides_by_a_part(run: CaseRun[Attention]) -> bool:
    """Each row is the right one times a factor above 1: the sum that it was divided by is too small."""
    right = run.expected["out"].double()
    ratio = (run.got["out"].double() * right).sum(-1) / right.square().sum(-1)
    return near(run, ratio[..., None] * right) and bool(ratio.max() > 1.05 and ratio.min() > 0.98)


def not_masked(run: CaseRun[Attention]) -> bool:
    """In rows of low scores, what lies behind the last key has taken over."""
    every = run.tree["q"].double() @ run.tree["k"].double().transpose(1, 2) * run.case.d_head**-0.5
    return near(run, attended(run, every), slice(0, None, 2))


def sees_the_next(run: CaseRun[Attention]) -> bool:
    case = run.case
    every = run.tree["q"].double() @ run.tree["k"].double().transpose(1, 2) * case.d_head**-0.5
    # In the last row of a tile, the next key may not be loaded any more.
    wrong = attended(run, every.masked_fill(above(case, 2), -float("inf")))
    return near(run, wrong, slice(0, min(case.block_m, case.block_n) - 1))


def misses_itself(run: CaseRun[Attention]) -> bool:
    every = scores(run).masked_fill(above(run.case, 0), -float("inf"))
    return near(run, attended(run, every), slice(1, None))


def scaled_by(run: CaseRun[Attention], *scales: float) -> bool:
    return any(near(run, attended(run, scores(run, scale))) for scale in scales)


def nearly(run: CaseRun[Attention]) -> bool:
    """Right, or off by little."""
    right = run.expected["out"]
    return torch.allclose(run.got["out"].double(), right.double(), rtol=0.03, atol=0.03)


def rounded_on_the_way(run: CaseRun[Attention]) -> bool:
    """Off by little in float32, but by more than float32 explains."""
    right = run.expected["out"]
    is_right = torch.allclose(run.got["out"], right, rtol=2e-4, atol=2e-4)
    return run.case.dtype == "float32" and nearly(run) and not is_right


def rounded_to_float16(run: CaseRun[Attention]) -> bool:
    """Off by little, but by more than the rounding of weights and results explains."""
    right, out, allowed = run.expected["out"].double(), run.got["out"].double(), tolerances(run)
    is_right = torch.allclose(out, right, rtol=allowed.rtol, atol=allowed.atol)
    return run.case.dtype == "float16" and not is_right and torch.allclose(out, right, rtol=0.1, atol=0.3)


def wrong_rows(run: CaseRun[Attention]) -> Tensor:
    """Which queries have a wrong result, (n_heads, seq)."""
    right = run.expected["out"].double()
    return ~torch.isclose(run.got["out"].double(), right, rtol=1e-2, atol=1e-2).all(-1)


def low_rows_alone(run: CaseRun[Attention]) -> bool:
    """Queries whose scores lie far below zero are wrong, and no others."""
    bad = wrong_rows(run)
    return bool(bad.any() and not bad[:, ::2].any())


def heads_mixed_up(run: CaseRun[Attention]) -> bool:
    """Heads behind the first hold the first one's result, what was there before, or hardly a row that is right."""
    bad = wrong_rows(run)
    if run.case.n_heads > 1 and not bad[0].any() and bad[1:].double().mean() > 0.5:
        return True
    first, later = run.got["out"][:1], run.got["out"][1:]
    copies = torch.allclose(later, first.expand_as(later), rtol=1e-2, atol=1e-2)
    unwritten = not first.isnan().all() and (later.isnan().all() or (later == 0).all())
    return bool(run.case.n_heads > 1 and (copies or unwritten))


def last_block_alone(run: CaseRun[Attention]) -> bool:
    """Each row is that of the last block of keys of its program; NaN where it sees none of them."""
    case = run.case
    ends = [min((row // case.block_m + 1) * case.block_m, case.seq) for row in range(case.seq)]
    firsts = torch.tensor([(end - 1) // case.block_n * case.block_n for end in ends])
    before = torch.arange(case.seq)[None, :] < firsts[:, None]
    wrong = attended(run, scores(run).masked_fill(before, -float("inf")))
    return torch.allclose(run.got["out"].double(), wrong, rtol=1e-2, atol=1e-2, equal_nan=True)


def wrong_from(run: CaseRun[Attention], first: int) -> bool:
    """The queries before `first` are right in all heads, and a good part of those behind is not."""
    bad = wrong_rows(run)
    return bool(first < run.case.seq and not bad[:, :first].any() and bad[:, first:].double().mean() > 0.25)


def writes_into_the_next_head(run: CaseRun[Attention]) -> bool:
    """The last head is right but for its first queries, and the first head is right."""
    bad = wrong_rows(run)
    return bool(run.case.n_heads > 1 and not bad[0].any() and bad[1, 0] and not bad[1, run.case.block_m :].any())


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
            "More keys and values are loaded than it takes: a program loads its queries once, and its loop ends with "
            "the block that holds its last query.",
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
    full_size=at_full_size(),
    diagnose=(
        NO_OTHER,
        Hint(
            lambda run: bool(run.got["out"][:, 0].isnan().any() and not run.got["out"][:, 1:].isnan().any()),
            "The first row is NaN: a query sees its own key too. Mask with queries >= keys, not with >.",
        ),
        Hint(
            # Before the NaN below: what is never written may hold anything.
            lambda run: wrong_from(run, run.case.seq // run.case.block_m * run.case.block_m),
            "The queries behind the last whole block are wrong, and no others. Round the number of programs up: "
            "triton.cdiv(seq, block_m).",
        ),
        Hint(
            heads_mixed_up,
            "Heads behind the first are not computed: head h begins h * seq * d_head elements behind the first, in all "
            "four tensors.",
        ),
        Hint(
            last_block_alone,
            "Each row is that of its last block of keys alone. At the end of the loop's body, the new maximum has to "
            "become the old one.",
        ),
        Hint(
            lambda run: bool(run.got["out"].isnan().all()),
            "All is NaN: exp overflows, as the scores are large. Subtract the row's running maximum first, and rescale "
            "with exp(old - new).",
            everywhere=False,
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
            lambda run: bool(run.got["out"].isnan().any()),
            "Rows are NaN: a block in which a row sees no key leaves its maximum at -inf, and -inf - (-inf) is no "
            "number. Begin with block 0, or subtract 0 there.",
        ),
        Hint(
            writes_into_the_next_head,
            "The first rows of the second head are wrong: the program with the end of the first one writes over them. "
            "Mask the store, too.",
            everywhere=False,
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
            lambda run: not nearly(run) and scaled_by(run, 1.0, 1 / run.case.d_head, run.case.d_head**0.5),
            "The scores are scaled wrongly: multiply q k^T with 1 / sqrt(d_head), before the maximum is taken.",
        ),
        Hint(
            lambda run: not nearly(run) and rescales_too_little(run),
            "When the maximum of a row rises, what was summed up before is too large: multiply both the sum and the "
            "output with exp(old - new).",
        ),
        Hint(
            lambda run: not nearly(run) and never_divides(run),
            "The output is never divided: after the loop, divide each row by its sum of exponentials.",
        ),
        Hint(
            lambda run: not nearly(run) and divides_by_a_part(run),
            "The rows are too large by a factor each: divide by the sum over all blocks, not by that of the last one.",
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
