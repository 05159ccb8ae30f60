"""Lab 19: what the usual mistakes make of a text that is dealt to ranks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab19.zigzag import NO_LABEL, NO_POSITION, Text
from labkit.oracles.lab19.zigzag_properties import Order, order_is_wrong, parts_fit, placed, whole_again
from labkit.spec import CANNOT_TELL, CaseRun

Condition = Callable[[CaseRun[Text]], Any]


def is_order(made: Callable[[int, int], Order], sort: bool = True) -> Condition:
    """A hint's condition: the positions are those that a mistake deals. CANNOT_TELL where these are right ones."""

    def when(run: CaseRun[Text]) -> Any:
        wrong = made(run.case.n_tokens, run.case.n_ranks)
        got = run.got["order"]
        if sort:
            wrong, got = [sorted(mine) for mine in wrong], [sorted(mine) for mine in got]
        if got != wrong:
            return False
        return True if order_is_wrong(run) else CANNOT_TELL

    return when


def spread(n_tokens: int, n_chunks: int) -> Order:
    """Chunks whose sizes differ by at most one."""
    cuts = [chunk * n_tokens // n_chunks for chunk in range(n_chunks + 1)]
    return [list(range(a, b)) for a, b in pairwise(cuts)]


def of_size(size: int, n_tokens: int, n_chunks: int) -> Order:
    """Chunks of one size; the last ones are short or empty where the text ends before."""
    return [[p for p in range(chunk * size, (chunk + 1) * size) if p < n_tokens] for chunk in range(n_chunks)]


def contiguous(n_tokens: int, n_ranks: int) -> Order:
    return spread(n_tokens, n_ranks)


def contiguous_padded(n_tokens: int, n_ranks: int) -> Order:
    return of_size(-(-n_tokens // n_ranks), n_tokens, n_ranks)


def round_robin(n_tokens: int, n_ranks: int) -> Order:
    return [list(range(rank, n_tokens, n_ranks)) for rank in range(n_ranks)]


def chunks_round_robin(n_tokens: int, n_ranks: int) -> Order:
    chunks = spread(n_tokens, 2 * n_ranks)
    return [chunks[rank] + chunks[n_ranks + rank] for rank in range(n_ranks)]


def padded_at_the_end(n_tokens: int, n_ranks: int) -> Order:
    chunks = of_size(-(-n_tokens // (2 * n_ranks)), n_tokens, 2 * n_ranks)
    return [chunks[rank] + chunks[2 * n_ranks - 1 - rank] for rank in range(n_ranks)]


def longer_at_the_end(n_tokens: int, n_ranks: int) -> Order:
    """Chunks rounded down, and the rest with the last one."""
    size = n_tokens // (2 * n_ranks)
    chunks = of_size(size, n_tokens, 2 * n_ranks)
    chunks[-1] += range(2 * n_ranks * size, n_tokens)
    return [chunks[rank] + chunks[2 * n_ranks - 1 - rank] for rank in range(n_ranks)]


def rest_is_lost(n_tokens: int, n_ranks: int) -> Order:
    size = n_tokens // (2 * n_ranks)
    chunks = of_size(size, n_tokens, 2 * n_ranks)
    return [chunks[rank] + chunks[2 * n_ranks - 1 - rank] for rank in range(n_ranks)]


def beyond_the_end(n_tokens: int, n_ranks: int) -> Order:
    size = -(-n_tokens // (2 * n_ranks))
    return padded_at_the_end(2 * n_ranks * size, n_ranks)


def labels_are(made: Callable[[CaseRun[Text], int], Tensor]) -> Condition:
    """A hint's condition: order, inputs and positions are right, and the labels those of a mistake."""

    def when(run: CaseRun[Text]) -> Any:
        if order_is_wrong(run):
            return False
        parts, tokens = run.got["parts"], run.tree["tokens"]
        rights = [placed(part["positions"], tokens, mine) for mine, part in zip(run.got["order"], parts, strict=True)]
        for part, right in zip(parts, rights, strict=True):
            if not all(torch.equal(part[name], right[name]) for name in ("inputs", "positions")):
                return False
        wrong = [made(run, rank) for rank in range(run.case.n_ranks)]
        if not all(torch.equal(part["labels"], labels) for part, labels in zip(parts, wrong, strict=True)):
            return False
        same = all(torch.equal(right["labels"], labels) for right, labels in zip(rights, wrong, strict=True))
        return CANNOT_TELL if same else True

    return when


def shifted_after_dealing(run: CaseRun[Text], rank: int, last: int | None) -> Tensor:
    """The next input of the same rank; behind its last token `last`, or the text's own last label for None."""
    part = run.got["parts"][rank]
    labels = torch.full_like(part["inputs"], NO_LABEL)
    n = int((part["positions"] != NO_POSITION).sum())
    if not n:
        return labels
    labels[:, : n - 1] = part["inputs"][:, 1:n]
    if last is None:
        labels[:, n - 1] = run.tree["tokens"][:, part["positions"][n - 1] + 1]
    else:
        labels[:, n - 1] = last
    return labels


def rolled(run: CaseRun[Text], rank: int) -> Tensor:
    """The next input of the same rank; behind its last token its first one."""
    part = run.got["parts"][rank]
    n = int((part["positions"] != NO_POSITION).sum())
    labels = torch.full_like(part["inputs"], NO_LABEL)
    labels[:, :n] = part["inputs"][:, :n].roll(-1, 1)
    return labels


def not_dealt(run: CaseRun[Text], rank: int) -> Tensor:
    """Labels in the text's own order, cut into blocks as long as the parts."""
    length = run.got["parts"][rank]["inputs"].shape[-1]
    labels = run.tree["tokens"][:, 1:][:, rank * length : (rank + 1) * length]
    return torch.nn.functional.pad(labels, (0, length - labels.shape[-1]), value=NO_LABEL)


def the_inputs(run: CaseRun[Text], rank: int) -> Tensor:
    part = run.got["parts"][rank]
    return torch.where(part["positions"] != NO_POSITION, part["inputs"], NO_LABEL)


def with_padding(name: str) -> Condition:
    """A hint's condition: all is right but what stands in the unused places of `name`."""

    def when(run: CaseRun[Text]) -> Any:
        if order_is_wrong(run):
            return False
        parts, tokens = run.got["parts"], run.tree["tokens"]
        seen = False
        for mine, part in zip(run.got["order"], parts, strict=True):
            n, right = len(mine), placed(torch.full_like(part["positions"], NO_POSITION), tokens, mine)
            for key, wanted in right.items():
                if not torch.equal(part[key][..., :n], wanted[..., :n]):
                    return False
                rest = part[key][..., n:]
                if key != name and not torch.equal(rest, wanted[..., n:]):
                    return False
                seen = seen or not torch.equal(rest, wanted[..., n:])
        return seen or CANNOT_TELL

    return when


def local_positions(run: CaseRun[Text]) -> Any:
    """Positions counted anew on each rank."""
    if order_is_wrong(run):
        return False
    for mine, part in zip(run.got["order"], run.got["parts"], strict=True):
        if part["positions"].reshape(-1)[: len(mine)].tolist() != list(range(len(mine))):
            return False
    return True if run.case.n_ranks > 1 else CANNOT_TELL


def differs_in_length(run: CaseRun[Text]) -> Any:
    """Parts as long as the rank's list, without padding."""
    if order_is_wrong(run):
        return False
    lengths = [part["inputs"].shape[-1] for part in run.got["parts"]]
    if lengths != [len(mine) for mine in run.got["order"]]:
        return False
    return len(set(lengths)) > 1 or CANNOT_TELL


def undone_as(made: Callable[[CaseRun[Text]], Tensor]) -> Condition:
    """A hint's condition: everything before is right, and the whole is what a mistake makes of it."""

    def when(run: CaseRun[Text]) -> Any:
        if order_is_wrong(run) or parts_fit(run):
            return False
        wrong = made(run)
        if torch.equal(wrong, run.tree["values"]):
            return CANNOT_TELL if whole_again(run) is None else False
        got = run.got["whole"]
        return got.shape == wrong.shape and torch.equal(torch.nan_to_num(got), torch.nan_to_num(wrong))

    return when


def padding_written_last(run: CaseRun[Text]) -> Tensor:
    """Position -1 is the last place of a tensor: padding overwrites it."""
    whole = run.tree["values"].clone()
    whole[:, -1] = float("nan")
    return whole


def one_behind_the_other(run: CaseRun[Text]) -> Tensor:
    """The parts in the order of ranks, without their padding."""
    positions = run.tree["positions"]
    return run.tree["values"][:, positions[positions != NO_POSITION]]


def gathered(run: CaseRun[Text]) -> Tensor:
    """Read at the positions, in place of written there."""
    positions = run.tree["positions"]
    positions = positions[positions != NO_POSITION]
    return run.tree["values"][:, positions][:, positions]


def as_dealt(run: CaseRun[Text]) -> Tensor:
    """Values one behind the other, put where the student's own order says."""
    dealt = torch.tensor([position for mine in run.got["order"] for position in mine])
    whole = torch.empty_like(run.tree["values"])
    whole[:, dealt] = one_behind_the_other(run)
    return whole


def never_filled(run: CaseRun[Text]) -> Any:
    """Not written yet comes as an exception; here the values are there and NaN beside them."""
    return not (order_is_wrong(run) or parts_fit(run)) and bool(run.got["whole"].isnan().any())
