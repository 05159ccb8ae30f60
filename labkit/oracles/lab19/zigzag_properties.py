"""Lab 19: what is true of a text that is dealt to ranks: nothing lost, the same work for all, labels beside inputs.

Everything is a property of what came back: many ways to deal are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from labkit.exercises.lab19.zigzag import NO_INPUT, NO_LABEL, NO_POSITION, Text
from labkit.oracles.hints import once
from labkit.spec import CaseRun

MOST_UNEVEN = 1.05
"""The largest work of a rank over the smallest, where 2n does not divide the length."""
LONG = 64
"""Tokens for each rank, from which on that is asked: below it a single token counts for too much."""

Order = list[list[int]]


def work(positions: Sequence[int]) -> int:
    """Pairs of a query and a key that it may see: position p sees p + 1."""
    return sum(position + 1 for position in positions)


def n_places(case: Text) -> int:
    """The most places that a rank may have: two chunks of the longer size."""
    return 2 * -(-case.n_tokens // (2 * case.n_ranks))


def every_position_once(run: CaseRun[Text]) -> str | None:
    """A property: each position belongs to exactly one rank."""
    order: Order = run.got["order"]
    if len(order) != run.case.n_ranks:
        return f"zigzag returned {len(order)} lists for {run.case.n_ranks} ranks"
    dealt = sorted(position for mine in order for position in mine)
    if dealt == list(range(run.case.n_tokens)):
        return None
    missing = sorted(set(range(run.case.n_tokens)) - set(dealt))
    if missing:
        return f"no rank has position {missing[0]}"
    beyond = [position for position in dealt if not 0 <= position < run.case.n_tokens]
    if beyond:
        return f"position {beyond[0]} does not exist: the text has {run.case.n_tokens} tokens"
    return f"position {next(a for a, b in pairwise(dealt) if a == b)} was dealt twice"


def work_is_even(run: CaseRun[Text]) -> str | None:
    """A property: equal work where 2n divides the length, nearly equal in a long text, and no rank much longer."""
    works = [work(mine) for mine in run.got["order"]]
    says = f"the ranks see {', '.join(map(str, works))} pairs of query and key"
    if max(map(len, run.got["order"])) > n_places(run.case):
        longest = max(map(len, run.got["order"]))
        return f"a rank has {longest} positions, and {n_places(run.case)} are enough"
    if run.case.n_tokens % (2 * run.case.n_ranks) == 0:
        return None if len(set(works)) == 1 else f"{says}, and all could see {sum(works) // len(works)}"
    if run.case.n_tokens >= LONG * run.case.n_ranks and max(works) > MOST_UNEVEN * min(works):
        return f"{says}: the most is {max(works) / min(works):.2f} times the least, {MOST_UNEVEN} is asked for"
    return None


def parts_fit(run: CaseRun[Text]) -> str | None:
    """A property: every rank's inputs, labels and positions belong together, as its list says, and are padded alike."""
    order, parts, tokens = run.got["order"], run.got["parts"], run.tree["tokens"]
    if len(parts) != run.case.n_ranks:
        return f"deal returned {len(parts)} parts for {run.case.n_ranks} ranks"
    lengths = {tuple(part[name].shape[-1:]) for part in parts for name in part}
    if len(lengths) != 1:
        return "the parts of the ranks are not all of one length"
    if parts[0]["inputs"].shape[-1] > n_places(run.case):
        return f"the parts have {parts[0]['inputs'].shape[-1]} places, and {n_places(run.case)} are enough"
    for rank, (mine, part) in enumerate(zip(order, parts, strict=True)):
        for name, right in placed(part["positions"], tokens, mine).items():
            if part[name].shape != right.shape:
                return f"{name} of rank {rank} have the shape {tuple(part[name].shape)}, not {tuple(right.shape)}"
            if part[name].dtype != torch.int64:
                return f"{name} of rank {rank} are {part[name].dtype}, not torch.int64"
            if not torch.equal(part[name], right):
                at = tuple((part[name] != right).nonzero()[0].tolist())
                where = "".join(f"[{index}]" for index in at)
                return f"{name}{where} of rank {rank} is {part[name][at]}, and {right[at]} is right"
    return None


def placed(positions: Tensor, tokens: Tensor, mine: Sequence[int]) -> dict[str, Tensor]:
    """What a rank should have in places whose positions are these; the positions are those of its list, in its order,
    and may have padding anywhere."""
    used = positions.reshape(-1) != NO_POSITION
    right = torch.full((positions.shape[-1],), NO_POSITION)
    if used.sum() == len(mine):
        right[used] = torch.tensor(mine, dtype=torch.int64)
    else:
        right[: len(mine)] = torch.tensor(mine, dtype=torch.int64)
    real = right != NO_POSITION
    inputs, labels = tokens[:, right.clamp_min(0)], tokens[:, right.clamp_min(0) + 1]
    return {
        "positions": right,
        "inputs": torch.where(real, inputs, NO_INPUT),
        "labels": torch.where(real, labels, NO_LABEL),
    }


def whole_again(run: CaseRun[Text]) -> str | None:
    """A property: `undo` puts every value where it was."""
    whole, values = run.got["whole"], run.tree["values"]
    if not isinstance(whole, Tensor) or whole.shape != values.shape:
        shape = tuple(whole.shape) if isinstance(whole, Tensor) else type(whole).__name__
        return f"undo returned {shape}, and the values have the shape {tuple(values.shape)}"
    if torch.equal(whole, values):
        return None
    text, position = (whole != values).any(-1).nonzero()[0].tolist()
    return f"undo puts something else in position {position} of text {text}"


@once
def order_is_wrong(run: CaseRun[Text]) -> str | None:
    return every_position_once(run) or work_is_even(run)
