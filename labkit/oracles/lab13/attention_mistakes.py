"""Lab 13: what attention makes of a result by each of the usual mistakes; the hints of `flash_attention` ask for it.

Nothing here says what a right result is, but for how close one has to be.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab13.flash_attention import ALIKE, Attention
from labkit.spec import CANNOT_TELL, CaseRun, Tolerance
from labkit.unwritten import unwritten


def tolerances(run: CaseRun[Attention]) -> Tolerance:
    """float32: scores near 150 are off by 1e-5 each. float16: the weights are rounded, and the result once more."""
    if run.case.dtype == "float32":
        return Tolerance(rtol=2e-4, atol=2e-4)
    eps = torch.finfo(run.tree["q"].dtype).eps
    return Tolerance(rtol=2 * eps, atol=2 * eps)


def scores(run: CaseRun[Attention], scale: float | None = None) -> Tensor:
    """(n_heads, seq, seq) in float64, -inf above the diagonal."""
    factor = run.case.d_head**-0.5 if scale is None else scale
    every = run.tree["q"].double() @ run.tree["k"].double().transpose(1, 2) * factor
    return every.masked_fill(above(run.case), -float("inf"))


def above(case: Attention, diagonal: int = 1) -> Tensor:
    return torch.ones(case.seq, case.seq, dtype=torch.bool).triu(diagonal)


def attended(run: CaseRun[Attention], masked_scores: Tensor) -> Tensor:
    return masked_scores.softmax(-1) @ run.tree["v"].double()


def near(run: CaseRun[Attention], wrong: Tensor, rows: slice = slice(None)) -> bool:
    """Whether the result is this (wrong) one, more or less."""
    rtol = 2e-3 if run.case.dtype == "float32" else 1e-2
    return torch.allclose(run.got["out"][:, rows].double(), wrong[:, rows], rtol=rtol, atol=rtol)


def last_keys(case: Attention) -> Tensor:
    """For each query the end of the keys that its program has to load, (seq,)."""
    return ((torch.arange(case.seq) // case.block_m + 1) * case.block_m).clamp(max=case.seq)


def in_blocks(
    run: CaseRun[Attention], rescale_out: bool = True, rescale_total: bool = True, divide_each: bool = False
) -> Tensor:
    """The online softmax over blocks of keys, with or without making up for a maximum that rose.

    divide_each: divided by the sum so far in every step, and not at the end.
    """
    case = run.case
    every, values = scores(run), run.tree["v"].double()
    top = torch.full_like(every[..., :1], -float("inf"))
    total, out = torch.zeros_like(top), torch.zeros_like(values)
    for start in range(0, case.seq, case.block_n):
        block, done = every[..., start : start + case.block_n], (out, total, top)
        new_top = torch.maximum(top, block.amax(-1, keepdim=True))
        shrink, weights = (top - new_top).exp(), (block - new_top).exp()
        total = total * (shrink if rescale_total else 1) + weights.sum(-1, keepdim=True)
        out = out * (shrink if rescale_out else 1) + weights @ values[:, start : start + case.block_n]
        top = new_top
        out = out / total if divide_each else out
        # A program's loop ends with the tile of its last query.
        runs = (start < last_keys(case))[:, None]
        out, total, top = (torch.where(runs, *pair) for pair in zip((out, total, top), done))
    return out if divide_each else out / total


def rescales_too_little(run: CaseRun[Attention]) -> bool:
    ways = ((False, False), (False, True), (True, False))
    return any(near(run, in_blocks(run, *way)) for way in ways)


def seen_in_tiles(run: CaseRun[Attention]) -> Tensor:
    """(n_queries, n_keys): the keys that a query's program loads, whole tiles of them, so some past the last."""
    ends = -(-last_keys(run.case) // run.case.block_n) * run.case.block_n
    return torch.arange(int(ends.max()))[None, :] < ends[:, None]


def all_scores(run: CaseRun[Attention], n_keys: int) -> tuple[Tensor, Tensor]:
    """(scores, values) in float64 without a mask; keys past the last are loaded as zeros."""
    q, k, v = (run.tree[name].double() for name in "qkv")
    k, v = (F.pad(one, (0, 0, 0, max(0, n_keys - run.case.seq)))[:, :n_keys] for one in (k, v))
    return q @ k.transpose(1, 2) * run.case.d_head**-0.5, v


def masked_by(run: CaseRun[Attention], seen: Tensor) -> Tensor:
    """The result if each query saw these keys, (n_queries, n_keys)."""
    every, values = all_scores(run, seen.shape[1])
    return every.masked_fill(~seen, -float("inf")).softmax(-1) @ values


def sees_its_whole_tile(run: CaseRun[Attention]) -> bool:
    """Each query sees all keys that its program loads: with those past the last one, which are 0, or without."""
    padded = seen_in_tiles(run)
    cols = torch.arange(padded.shape[1])
    ways = (padded, padded & (cols < run.case.seq), cols < last_keys(run.case)[:, None])
    return any(near(run, masked_by(run, seen)) for seen in ways)


def loop_ends_too_early(run: CaseRun[Attention]) -> object:
    """The loop of block i ends with key (i + 1) * block_n; where block_m is not larger, no query lacks a key by it."""
    case = run.case
    if case.block_m <= case.block_n:
        return CANNOT_TELL if near(run, run.expected["out"].double()) else False
    rows, cols = torch.arange(case.seq), torch.arange(case.seq)
    ends = (rows // case.block_m + 1) * case.block_n
    return near(run, masked_by(run, (cols <= rows[:, None]) & (cols < ends[:, None])))


def mask_is_transposed(run: CaseRun[Attention]) -> bool:
    """Queries of the first block of keys see what comes after them; later ones see nothing of it, which is NaN."""
    tiles = seen_in_tiles(run)
    later = torch.arange(tiles.shape[1])[None, :] >= torch.arange(run.case.seq)[:, None]
    first = slice(0, min(run.case.block_n, run.case.seq))
    return near(run, masked_by(run, tiles & later), first) and bool(run.got["out"][:, first.stop :].isnan().all())


def nan_rows(run: CaseRun[Attention]) -> Tensor:
    """Queries with NaN anywhere in their result, (n_heads, seq)."""
    return run.got["out"].isnan().any(-1)


def nan_where_blind(run: CaseRun[Attention]) -> bool:
    """NaN in the rows that see no key of the last tile, of their program or of all, and nothing wrong elsewhere."""
    case, rows = run.case, torch.arange(run.case.seq)
    for ends in (last_keys(case), torch.tensor(case.seq)):
        blind = (rows < (ends - 1) // case.block_n * case.block_n).expand(case.n_heads, -1)
        if blind.any() and torch.equal(nan_rows(run), blind) and not (wrong_rows(run) & ~blind).any():
            return True
    return False


def overflowed(run: CaseRun[Attention]) -> bool:
    """NaN in every row whose scores are large, above or below 0."""
    is_large = torch.ones(run.case.seq, dtype=torch.bool)
    if run.case.dtype == "float16":
        is_large[ALIKE] = False
    return bool(nan_rows(run)[:, is_large].all())


def masked_too_late(run: CaseRun[Attention]) -> bool:
    """NaN in rows of low scores whose last tile reaches past the last key, where a score of 0 is the maximum."""
    tiles = seen_in_tiles(run)
    past = torch.zeros(run.case.seq, dtype=torch.bool)
    if tiles.shape[1] > run.case.seq:
        past = tiles[:, run.case.seq]
    low = torch.arange(run.case.seq) % 2 == 1
    bad = nan_rows(run)
    return bool(bad.any() and not bad[:, ~(past & low)].any() and not (wrong_rows(run) & ~bad).any())


def grid_axes_swapped(run: CaseRun[Attention]) -> object:
    """The first n_heads blocks of queries are right in the first n_blocks heads, and the others were never stored."""
    case = run.case
    n_blocks = -(-case.seq // case.block_m)
    written = torch.zeros(case.n_heads, case.seq, dtype=torch.bool)
    written[:n_blocks, : case.n_heads * case.block_m] = True
    if written.all():
        return CANNOT_TELL
    return bool(unwritten(run.got["out"]).all(-1)[~written].all() and not wrong_rows(run)[written].any())


def heads_overlap(run: CaseRun[Attention]) -> bool:
    """A head begins too few elements past the one before it, so that it reads and writes its rows."""
    case = run.case
    if case.n_heads == 1:
        return False
    flat = {name: run.tree[name].double().flatten() for name in "qkv"}
    size = case.seq * case.d_head
    for step in (case.d_head, case.seq, 1, case.block_m * case.d_head):
        out = torch.full_like(flat["q"], float("nan"))
        results = []
        for head in range(case.n_heads):
            q, k, v = (one[head * step :][:size].view(1, case.seq, case.d_head) for one in flat.values())
            results.append(F.scaled_dot_product_attention(q, k, v, is_causal=True).flatten())
        # In the interpreter the programs of one block of queries follow each other, head by head.
        for first in range(0, size, case.block_m * case.d_head):
            end = min(first + case.block_m * case.d_head, size)
            for head, result in enumerate(results):
                out[head * step + first : head * step + end] = result[first:end]
        if torch.allclose(run.got["out"].double().flatten(), out, rtol=1e-2, atol=1e-2, equal_nan=True):
            return True
    return False


def never_divides(run: CaseRun[Attention]) -> bool:
    every = scores(run)
    return near(run, (every - every.amax(-1, keepdim=True)).exp() @ run.tree["v"].double())


def divides_by_a_part(run: CaseRun[Attention]) -> bool:
    """Each row is the right one times a factor above 1, or infinite: the sum that it was divided by is too small, or 0.

    Compared without the factor: it may be in the hundreds, and multiplies what float32 rounds as well.
    """
    right, out = run.expected["out"].double(), run.got["out"].double()
    finite = out.isfinite()
    ratio = (out * right).where(finite, 0).sum(-1) / right.square().where(finite, 0).sum(-1)
    ratio = ratio.where(finite.any(-1), math.inf)
    rtol = 2e-3 if run.case.dtype == "float32" else 1e-2
    is_scaled = torch.isclose(out / ratio[..., None], right, rtol=rtol, atol=rtol)
    is_like = torch.where(finite, is_scaled, out.isinf() & (out.sign() != -right.sign()))
    return bool(is_like.all() and ratio.max() > 1.05 and ratio.min() > 0.98)


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
    """Heads past the first hold the first one's result, what was there before, or hardly a row that is right."""
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


def writes_into_the_next_head(run: CaseRun[Attention]) -> object:
    """The last head is right but for its first queries, and the first head is right."""
    if run.case.n_heads == 1:
        return CANNOT_TELL
    bad = wrong_rows(run)
    return bool(not bad[0].any() and bad[1, 0] and not bad[1, run.case.block_m :].any())
