"""Lab 19: what the usual mistakes make of attention around a ring, worked out block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab19.ring_attention import Ring, some
from labkit.oracles.hints import once
from labkit.oracles.lab19.whole_attention import CLOSE, block, block_scores, merged, whole, wide
from labkit.spec import CANNOT_TELL, CaseRun

Pair = tuple[Tensor, Tensor]
Made = Callable[[CaseRun[Ring], int], Pair]
"""(run, rank) -> output and lse, or the gradients of k and v, as a mistake makes them."""


def is_made(names: tuple[str, str], made: Made) -> Callable[[CaseRun[Ring]], Any]:
    """A hint's condition: what came back under these names is what a mistake makes; CANNOT_TELL where that is right, or
    nothing of it comes back."""

    def when(run: CaseRun[Ring]) -> Any:
        if names[0] not in run.expected["ranks"][0]:
            return CANNOT_TELL
        wrong = [[part.float() for part in made(run, rank)] for rank in range(run.case.n_ranks)]
        if run.case.forward_only:
            wrong = [[some(out), lse] for out, lse in wrong]
        right = [[one[name] for name in names] for one in run.expected["ranks"]]
        if compare(right, wrong, CLOSE) is None:
            return CANNOT_TELL
        return compare(wrong, [[one[name] for name in names] for one in run.got["ranks"]], CLOSE) is None

    return when


def forward_is(made: Made) -> Callable[[CaseRun[Ring]], Any]:
    return is_made(("out", "lse"), made)


def backward_is(made: Made) -> Callable[[CaseRun[Ring]], Any]:
    return is_made(("d_k", "d_v"), made)


def has_nan(run: CaseRun[Ring], *names: str) -> bool:
    return any(bool(one[name].isnan().any()) for one in run.got["ranks"] for name in names if name in one)


def no_number(run: CaseRun[Ring]) -> bool:
    return has_nan(run, *run.got["ranks"][0])


def no_number_in_gradients(run: CaseRun[Ring]) -> Any:
    """Outputs are numbers, gradients are not."""
    if run.case.forward_only:
        return CANNOT_TELL
    return not has_nan(run, "out", "lse") and has_nan(run, "d_q", "d_k", "d_v")


def logarithms_added(run: CaseRun[Ring]) -> bool:
    """lse + lse at each block, and outputs weighed by it: NaN from the first block on of which a query sees nothing."""
    for rank, got in enumerate(run.got["ranks"]):
        blocks = [block(run, rank, source) for source in sources(run, rank)]
        out, lse = blocks[0]
        for o, part in blocks[1:]:
            both = lse + part
            out = out * (lse - both).exp()[..., None] + o * (part - both).exp()[..., None]
            lse = both
        wrong = [some(out.float()) if run.case.forward_only else out.float(), lse.float()]
        if compare(wrong, [got["out"], got["lse"]], CLOSE) is not None:
            return False
    return True


def sources(run: CaseRun[Ring], rank: int) -> list[int]:
    """Whose block a rank has at each step."""
    return [(rank - step) % run.case.n_ranks for step in range(run.case.n_ranks)]


def only_own_block(run: CaseRun[Ring], rank: int) -> Pair:
    return block(run, rank, rank)


def without_the_last(run: CaseRun[Ring], rank: int) -> Pair:
    return merged([block(run, rank, source) for source in sources(run, rank)[:-1]])


def keys_in_own_places(run: CaseRun[Ring], rank: int, direction: int = 0) -> Pair:
    """direction 0: the keys that came are taken for the rank's own; 1: for those of the rank on the other side."""
    n = run.case.n_ranks
    taken_for = [(rank + direction * step) % n for step in range(n)]
    return merged([block(run, rank, *pair) for pair in zip(sources(run, rank), taken_for, strict=True)])


def accumulated(run: CaseRun[Ring], rank: int, how: str) -> Pair:
    """Outputs of blocks put together in a wrong way, with the right lse."""
    blocks = [block(run, rank, source) for source in sources(run, rank)]
    _, lse = merged(blocks)
    if how == "not rescaled":
        out = blocks[0][0]
        for step in range(1, len(blocks)):
            out = out + (blocks[step][1] - merged(blocks[: step + 1])[1]).exp()[..., None] * blocks[step][0]
        return out, lse
    return sum(out for out, _ in blocks) / (len(blocks) if how == "mean" else 1), lse


def joined(run: CaseRun[Ring], rank: int, how: str) -> Pair:
    """The right output, with logarithms put together in a wrong way."""
    blocks = [block(run, rank, source) for source in sources(run, rank)]
    each = torch.stack([lse for _, lse in blocks])
    return merged(blocks)[0], each.sum(0) if how == "sum" else each.amax(0)


@once
def parts(run: CaseRun[Ring], rank: int, source: int, own_lse: bool = False) -> Pair:
    """What a rank's queries add to the gradients of the keys and values of `source`."""
    lse, out = whole(run)["lse"][rank], whole(run)["out"][rank]
    if own_lse:
        out, lse = block(run, rank, source)
        lse = lse.nan_to_num(neginf=0.0)
    share = (block_scores(run, rank, source) - lse[..., None]).exp()
    d_out = wide(run, "d_out")[rank]
    return d_scores_of(run, rank, source, share, out).mT @ wide(run, "q")[rank], share.mT @ d_out


def d_scores_of(run: CaseRun[Ring], rank: int, source: int, share: Tensor, out: Tensor) -> Tensor:
    """The gradient of the scores of a rank's queries and the keys of `source`, with these weights and outputs."""
    d_out, v = wide(run, "d_out")[rank], wide(run, "v")[source]
    return share * (d_out @ v.mT - (d_out * out).sum(-1, keepdim=True)) * run.case.d**-0.5


def added(pairs: list[Pair]) -> Pair:
    return sum(a for a, _ in pairs), sum(b for _, b in pairs)


def away_from_home(run: CaseRun[Ring], rank: int) -> Pair:
    """The finished gradients of the block that a rank had last."""
    owner = (rank + 1) % run.case.n_ranks
    return whole(run)["d_k"][owner], whole(run)["d_v"][owner]


def own_queries_only(run: CaseRun[Ring], rank: int) -> Pair:
    return parts(run, rank, rank)


def hops_short(run: CaseRun[Ring], rank: int) -> Pair:
    """All that a rank worked out, whosever keys it was for."""
    return added([parts(run, rank, source) for source in range(run.case.n_ranks)])


def overwritten(run: CaseRun[Ring], rank: int) -> Pair:
    """What the last rank that a block visits has added: that before the owner."""
    return parts(run, (rank - 1) % run.case.n_ranks, rank)


def last_block_of_queries(run: CaseRun[Ring]) -> Any:
    """The gradient of q is what the last block adds to it."""
    if run.case.forward_only:
        return CANNOT_TELL
    wrong = [of_queries(run, rank, (rank + 1) % run.case.n_ranks).float() for rank in range(run.case.n_ranks)]
    return compare(wrong, [one["d_q"] for one in run.got["ranks"]], CLOSE) is None


def of_queries(run: CaseRun[Ring], rank: int, source: int) -> Tensor:
    """What the keys of `source` add to the gradient of a rank's queries."""
    lse, out = whole(run)["lse"][rank], whole(run)["out"][rank]
    share = (block_scores(run, rank, source) - lse[..., None]).exp()
    return d_scores_of(run, rank, source, share, out) @ wide(run, "k")[source]


def counted_from_own_lse(run: CaseRun[Ring], rank: int) -> Pair:
    return added([parts(run, query, rank, True) for query in range(run.case.n_ranks)])
