"""Lab 13: gradients of attention by a wrong formula: scales, row sums, factors, and lse of another row.

The hints of `backward_hints` ask for it. Mistakes in masks and loops are in `backward_tiles`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab13.flash_backward import Backward
from labkit.oracles.lab13.backward_played import (
    GRADIENTS,
    close,
    gradients,
    is_right,
    made_by,
    right,
    walked,
    wrong_rows,
)
from labkit.spec import CaseRun


def scaled(name: str, power: int) -> Callable[[CaseRun], bool]:
    """This gradient has the scale 1 / sqrt(d_head) `power` times too often; the others are right or so as well."""

    def condition(run: CaseRun[Backward]) -> bool:
        factor = right(run).scale ** power
        return not is_right(run, name) and bool(close(run, run.got[name], gradients(run)[name] * factor).all())

    return condition


def without_row_sums(run: CaseRun[Backward]) -> bool:
    known = right(run)
    return made_by(run, gradients(run, ds=known.p * known.dp))


def row_sums_after_the_product(run: CaseRun[Backward]) -> bool:
    """ds = p * dp - row_sums, in all lanes of a tile."""
    known = right(run)
    of_queries, of_keys = (known.p * known.dp - known.row_sums * tiles for tiles in walked(run))
    return made_by(run, gradients(run, ds=of_queries, ds_of_keys=of_keys))


def other_row_sums(run: CaseRun[Backward]) -> bool:
    """The sum of something else, its mean, or with the wrong sign."""
    known = right(run)
    product = known.out * known.dout
    others = (known.out.sum(-1), known.dout.sum(-1), product.mean(-1), -product.sum(-1), (known.dout**2).sum(-1))
    return any(made_by(run, gradients(run, ds=known.p * (known.dp - one[..., None]))) for one in others)


def by_tiles(run: CaseRun[Backward], work: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """(n_heads, seq, seq), made of work(scores, dp) of the tiles of block_n keys; -inf where nothing is seen."""
    known = right(run)
    scores = (known.unmasked.log() + known.lse[..., None]).masked_fill(~known.seen, -float("inf"))
    pairs = zip(scores.split(run.case.block_n, -1), known.dp.split(run.case.block_n, -1))
    return torch.cat([work(*pair) for pair in pairs], -1)


def softmax_of_a_tile(run: CaseRun[Backward]) -> bool:
    """p is normalized in each tile for itself; tiles in which a query sees nothing may be NaN, or 0."""
    known = right(run)
    p = by_tiles(run, lambda scores, _: scores.softmax(-1))
    ways = (p, p.nan_to_num(0.0))
    left = known.dp - known.row_sums
    if any(made_by(run, gradients(run, one, one * left)) for one in ways):
        return True
    # What is below -inf - (-inf) in one lane is NaN in all that its products reach.
    return bool(p.isnan().any()) and made_by(run, spread(run, p, p * left))


def spread(run: CaseRun[Backward], p: Tensor, ds: Tensor) -> dict[str, Tensor]:
    """As `gradients`, over the tiles that a program goes over alone: NaN elsewhere does not reach it."""
    of_queries, of_keys = walked(run)
    return gradients(
        run,
        ds=torch.where(of_queries, ds, 0.0),
        p_of_keys=torch.where(of_keys, p, 0.0),
        ds_of_keys=torch.where(of_keys, ds, 0.0),
    )


def row_sums_of_a_tile(run: CaseRun[Backward]) -> bool:
    known = right(run)
    pairs = zip(known.p.split(run.case.block_n, -1), known.dp.split(run.case.block_n, -1))
    ds = torch.cat([p * (dp - (p * dp).sum(-1, keepdim=True)) for p, dp in pairs], -1)
    return made_by(run, gradients(run, ds=ds))


def other_factor(run: CaseRun[Backward]) -> bool:
    """A product of other tensors: of p in place of ds, or of what else has the shape."""
    known = right(run)
    p, ds, dp = known.p, known.ds, known.dp * known.seen
    others = {
        "dq": [a @ b * known.scale for a, b in ((p, known.k), (dp, known.k), (ds, known.v), (ds, known.q))],
        "dk": [a.mT @ b * known.scale for a, b in ((p, known.q), (dp, known.q), (ds, known.dout), (ds, known.k))],
        "dv": [a.mT @ b for a, b in ((ds, known.dout), (p, known.out), (p, known.q), (p, known.v))],
    }
    off = [name for name in GRADIENTS if not is_right(run, name)]
    return bool(off) and all(any(bool(close(run, run.got[name], one).all()) for one in others[name]) for name in off)


def negative(run: CaseRun[Backward]) -> bool:
    return made_by(run, {name: -one for name, one in gradients(run).items()})


def to_the_base_two(run: CaseRun[Backward]) -> bool:
    known = right(run)
    p = known.p.pow(math.log(2))
    return made_by(run, gradients(run, p, p * (known.dp - known.row_sums)))


def returned_in_another_order(run: CaseRun[Backward]) -> bool:
    """All three are there, under other names."""
    true = gradients(run)
    orders = list(permutations(GRADIENTS))[1:]
    return any(
        all(bool(close(run, run.got[name], true[other]).all()) for name, other in zip(GRADIENTS, order))
        for order in orders
    )


def lse_of_the_first_head(run: CaseRun[Backward]) -> bool:
    """The logarithms of sums, the row sums, or both, are those of the first head in all of them."""
    known = right(run)
    if run.case.n_heads == 1:
        return False
    p = known.p * (known.lse - known.lse[:1])[..., None].exp()
    left, first = known.dp - known.row_sums, known.dp - known.row_sums[:1]
    ways = ((p, p * left), (p, p * first), (known.p, known.p * first))
    return any(made_by(run, gradients(run, *way)) for way in ways)


def overflowed(run: CaseRun[Backward]) -> bool:
    """What every second query has is not finite: of dq those rows, of dk and dv all that such queries see."""
    off = {name: ~run.got[name].isfinite().all(-1) for name in GRADIENTS if not is_right(run, name)}
    last = run.case.seq - 2 if run.case.causal else run.case.seq

    def holds(first: int) -> bool:
        big = {"dq": slice(first, None, 2), "dk": slice(0, last), "dv": slice(0, last)}
        return all(bool(bad[:, big[name]].all()) for name, bad in off.items())

    # Where a factor of the scores is wrong, those of the rows of low scores may be what overflows.
    return bool(off) and (holds(2) or holds(1))


def keys_past_the_last(run: CaseRun[Backward]) -> bool:
    """NaN in dq alone, in rows of low scores, where exp of a score of 0 overflows."""
    bad = run.got["dq"].isnan().any(-1)
    others = is_right(run, "dk") and is_right(run, "dv")
    return bool(others and bad.any() and not bad[:, ::2].any() and not (wrong_rows(run, "dq") & ~bad).any())


def nearly(run: CaseRun[Backward]) -> bool:
    """Off by little for the numbers of each column: in float32 by what tf32 makes of scores near LEVEL."""
    if run.case.dtype != "float32":
        return all(is_right(run, name) for name in GRADIENTS)
    for name in GRADIENTS:
        off, largest = (
            one.double().abs().amax((0, 1)) for one in (run.got[name] - run.expected[name], run.expected[name])
        )
        if not bool((off <= 0.15 * largest.clamp(min=1.0)).all()):
            return False
    return True


def factor_not_transposed(run: CaseRun[Backward]) -> bool:
    """A product of v, p or ds as it is, where it should be transposed and the tile's shape lets it pass."""
    case, known = run.case, right(run)
    off = [name for name in GRADIENTS if not is_right(run, name)]
    if case.block_n == case.d_head:
        dp = torch.cat([known.dout @ one for one in _padded(known.v, 1, case.block_n)], -1)[..., : case.seq]
        if made_by(run, gradients(run, ds=known.p * (dp - known.row_sums))):
            return True
    if case.block_m != case.block_n or "dq" in off:
        return False
    size = case.block_m

    def product(one: Tensor, by: Tensor) -> Tensor:
        """For each block of keys, the sum over blocks of queries of a tile times the queries' rows of `by`."""
        of_queries = [_padded(rows, 2, size) for rows in _padded(one, 1, size)]
        blocks = list(zip(*of_queries))
        rows = _padded(by, 1, size)
        return torch.cat([sum(tile @ part for tile, part in zip(column, rows)) for column in blocks], 1)[:, : case.seq]

    wrong = {"dk": product(known.ds, known.q) * known.scale, "dv": product(known.p, known.dout)}
    # Lanes of queries past the last may hold what they like.
    sure = torch.arange(case.seq) % size < case.seq % size
    return bool(off) and all(bool(close(run, run.got[name], wrong[name])[:, sure].all()) for name in off)


def _padded(one: Tensor, dim: int, size: int) -> list[Tensor]:
    """Its blocks of that size along a dimension, the last one with zeros behind its end."""
    missing = -one.shape[dim] % size
    behind = [0, 0] * (one.dim() - 1 - dim) + [0, missing]
    return list(F.pad(one, behind).split(size, dim))
