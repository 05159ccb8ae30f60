"""Lab 13: gradients of attention from the wrong tiles, rows or heads: masks, ends of loops, numbers of programs.

The hints of `backward_hints` ask for it. Mistakes in the formulas are in `backward_mistakes`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.exercises.lab13.flash_backward import Backward
from labkit.oracles.lab13.attention_mistakes import last_keys
from labkit.oracles.lab13.backward_played import (
    GRADIENTS,
    gradients,
    is_right,
    made_by,
    places,
    right,
    walked,
    wrong_rows,
)
from labkit.spec import CANNOT_TELL, CaseRun


def with_mask(run: CaseRun[Backward], mask: Tensor, whole: bool = False) -> dict[str, Tensor]:
    """With another mask in the tiles that are gone over, or, where `whole`, in all of them."""
    known = right(run)
    of_queries, of_keys = (mask, mask) if whole else (mask & one for one in walked(run))
    left = known.dp - known.row_sums
    p, p_of_keys = known.unmasked * of_queries, known.unmasked * of_keys
    return gradients(run, p, p * left, p_of_keys, p_of_keys * left)


def unmasked(run: CaseRun[Backward]) -> bool:
    return run.case.causal and made_by(run, with_mask(run, torch.ones_like(right(run).seen)))


def causal_ignored(run: CaseRun[Backward]) -> bool:
    rows, cols = places(run)
    other = torch.ones_like(rows >= cols) if run.case.causal else rows >= cols
    return made_by(run, with_mask(run, other, whole=True))


def mask_is_transposed(run: CaseRun[Backward]) -> bool:
    rows, cols = places(run)
    return run.case.causal and made_by(run, with_mask(run, rows <= cols))


def misses_itself(run: CaseRun[Backward]) -> bool:
    rows, cols = places(run)
    return run.case.causal and made_by(run, with_mask(run, rows > cols))


def sees_the_next(run: CaseRun[Backward]) -> bool:
    rows, cols = places(run)
    return run.case.causal and made_by(run, with_mask(run, rows + 1 >= cols))


def on_the_other_side(run: CaseRun[Backward]) -> bool:
    """Programs go from the first tile to the diagonal where they should go on from it, or the other way round."""
    case, (rows, cols) = run.case, places(run)
    known = right(run)
    ends = -(-(cols // case.block_n + 1) * case.block_n // case.block_m) * case.block_m
    first = rows // case.block_m * case.block_m // case.block_n * case.block_n
    p, p_of_keys = known.p * (cols >= first), known.p * (rows < ends)
    left = known.dp - known.row_sums
    return case.causal and made_by(run, gradients(run, p, p * left, p_of_keys, p_of_keys * left))


def leaves_out_tiles(run: CaseRun[Backward]) -> object:
    """A loop begins or ends at a tile of the other blocks' size, or one late; where the tiles are too many, it fits."""
    case, (rows, cols) = run.case, places(run)
    if all(is_right(run, name) for name in GRADIENTS):
        return CANNOT_TELL
    known, n = right(run), cols // case.block_n
    ends = (rows // case.block_m + 1) * case.block_n
    for first in (n * case.block_m, (n * case.block_n // case.block_m + 1) * case.block_m):
        p, p_of_keys, left = known.p * (cols < ends), known.p * (rows >= first), known.dp - known.row_sums
        if case.causal and made_by(run, gradients(run, p, p * left, p_of_keys, p_of_keys * left)):
            return True
    return False


def leaves_out_the_last_block(run: CaseRun[Backward]) -> bool:
    """A loop goes over whole blocks alone."""
    case, (rows, cols), known = run.case, places(run), right(run)
    p = known.p * (cols < case.seq // case.block_n * case.block_n)
    p_of_keys = known.p * (rows < case.seq // case.block_m * case.block_m)
    left = known.dp - known.row_sums
    return made_by(run, gradients(run, p, p * left, p_of_keys, p_of_keys * left))


def last_tile_alone(run: CaseRun[Backward]) -> bool:
    """Each program holds what its last tile brought."""
    case, (rows, cols) = run.case, places(run)
    ends = last_keys(case)[:, None] if case.causal else torch.tensor(case.seq)
    of_queries = cols >= (ends - 1) // case.block_n * case.block_n
    of_keys = rows >= (case.seq - 1) // case.block_m * case.block_m
    known = right(run)
    p, p_of_keys, left = known.p * of_queries, known.p * of_keys, known.dp - known.row_sums
    return made_by(run, gradients(run, p, p * left, p_of_keys, p_of_keys * left))


def heads_mixed_up(run: CaseRun[Backward]) -> bool:
    """The first head is right, and hardly a row of the others is in what is wrong."""
    if run.case.n_heads == 1:
        return False
    off = [wrong_rows(run, name) for name in GRADIENTS if not is_right(run, name)]
    return bool(off) and all(not one[0].any() and one[1:].double().mean() > 0.9 for one in off)


def wrong_from(run: CaseRun[Backward], name: str, first: int) -> bool:
    """This gradient is right before a row, in all heads, and hardly right behind it."""
    bad = wrong_rows(run, name)
    return bool(first < run.case.seq and not bad[:, :first].any() and bad[:, first:].double().mean() > 0.75)


def reached(run: CaseRun[Backward], dq: int, dk: int) -> bool:
    """The gradients are right up to these rows, of queries and of keys, and not behind them.

    What is not stored of the queries may also be their row sums, without which all of dk is NaN.
    """
    found = {name: is_right(run, name) or wrong_from(run, name, dk if name != "dq" else dq) for name in GRADIENTS}
    if not is_right(run, "dq") and bool(run.got["dk"].isnan().any()):
        found["dk"] = True
    return all(found.values()) and not all(is_right(run, name) for name in GRADIENTS)


def too_few_programs(run: CaseRun[Backward]) -> bool:
    """Rows past the last whole block are not computed, and all others are right."""
    case = run.case
    return reached(run, case.seq // case.block_m * case.block_m, case.seq // case.block_n * case.block_n)


def programs_of_the_other_blocks(run: CaseRun[Backward]) -> object:
    """As many programs of queries as there are blocks of keys, or the other way round; too many do no harm."""
    case = run.case
    if all(is_right(run, name) for name in GRADIENTS):
        return CANNOT_TELL
    n_blocks_m, n_blocks_n = -(-case.seq // case.block_m), -(-case.seq // case.block_n)
    return reached(run, n_blocks_n * case.block_m, n_blocks_m * case.block_n)


def stores_past_its_rows(run: CaseRun[Backward]) -> bool:
    """Some store is outside of its tensor: in the last head, and in the others over the next one's rows."""
    return any(": store of" in line for line in run.held.get("out_of_bounds", ()))
