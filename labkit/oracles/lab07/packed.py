"""Lab 07: what is true of documents that were dealt to windows."""

from __future__ import annotations

import math

import torch

from labkit.exercises.lab07.packing import Packing
from labkit.oracles.hints import once
from labkit.spec import CaseRun


def least_windows(run: CaseRun[Packing]) -> int:
    """What the tokens fill."""
    return -(-int(run.tree["lengths"].sum()) // run.case.window)


def most_windows(run: CaseRun[Packing]) -> int:
    """First fit decreasing stays within one per cent and one window of what the tokens fill, rounded up: on 7,000 draws
    of such lengths it never took more. Without rounding up, it takes more on one small draw in a hundred.
    """
    return math.ceil(1.01 * least_windows(run)) + 1


@once
def counts(run: CaseRun[Packing]) -> torch.Tensor:
    """How often each document comes."""
    order = run.got["order"]
    known = order[(order >= 0) & (order < run.case.n_documents)]
    return torch.bincount(known, minlength=run.case.n_documents)


def each_once(run: CaseRun[Packing]) -> str | None:
    """Every document is in one window."""
    order, found = run.got["order"], counts(run)
    if strange := order[(order < 0) | (order >= run.case.n_documents)].tolist():
        return f"pack names document {strange[0]}; there are documents 0 to {run.case.n_documents - 1}"
    absent, twice = (found == 0).nonzero().flatten().tolist(), (found > 1).nonzero().flatten().tolist()
    if absent:
        return f"pack leaves {_some(absent)} out"
    return f"pack puts {_some(twice)} into more than one window" if twice else None


@once
def fillings(run: CaseRun[Packing]) -> torch.Tensor:
    """The tokens of each window."""
    window_of = torch.repeat_interleave(torch.arange(len(run.got["sizes"])), run.got["sizes"])
    return torch.zeros(len(run.got["sizes"]), dtype=torch.int64).index_add(
        0, window_of, run.tree["lengths"][run.got["order"]]
    )


def fit(run: CaseRun[Packing]) -> str | None:
    """No window holds more tokens than it can."""
    filled = fillings(run)
    over = (filled > run.case.window).nonzero().flatten().tolist()
    return f"window {over[0]} would hold {filled[over[0]]} tokens; {run.case.window} fit" if over else None


def no_empty_window(run: CaseRun[Packing]) -> str | None:
    """Every window holds a document."""
    empty = (run.got["sizes"] == 0).nonzero().flatten().tolist()
    return f"window {empty[0]} holds no document" if empty else None


def few(run: CaseRun[Packing]) -> str | None:
    """About as few windows as the tokens fill."""
    n, most = len(run.got["sizes"]), most_windows(run)
    if n <= most:
        return None
    tokens = int(run.tree["lengths"].sum())
    least = least_windows(run)
    return (
        f"pack opens {n:,} windows of {run.case.window} for {tokens:,} tokens, which fill k = {least:,}; at most "
        f"{most:,} are allowed (1.01 k + 1, rounded up)"
    )


def _some(numbers: list[int]) -> str:
    return f"document {numbers[0]}" if len(numbers) == 1 else f"{len(numbers):,} documents"
