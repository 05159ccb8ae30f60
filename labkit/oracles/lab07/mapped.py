"""Lab 07: what is true of a memory-mapped file of tokens.

What the usual mistakes look like stands beside the oracle.
"""

from __future__ import annotations

import numpy as np
import torch

from labkit.exercises.lab07.memory_map import (
    N_LARGE_DOCUMENTS,
    N_READ_DOCUMENTS,
    N_READ_WINDOWS,
    N_STREAMED,
    STREAMED_TOKENS,
    Corpus,
)
from labkit.oracles.hints import once
from labkit.spec import CaseRun, KiB, MiB

MOST_KEPT_BYTES = 8 * (N_LARGE_DOCUMENTS + 1) + 256 * KiB
"""The borders as numbers of 8 bytes, and what objects take."""
MOST_OWN_BYTES = 16 * MiB
"""By how much a process may grow meanwhile. What is loaded is 96 MiB or more."""
MOST_READ_BYTES = 128 * KiB
"""What an object may hold more after many reads. Small windows that are kept take at least three times as much."""
MOST_STREAMED_BYTES = MiB
"""While 4 MiB of tokens are written: a document as a list and as numbers, several times over."""


@once
def tokens(run: CaseRun[Corpus]) -> torch.Tensor:
    return torch.cat(run.tree["documents"])


@once
def borders(run: CaseRun[Corpus]) -> torch.Tensor:
    return lengths_for_borders(run).cumsum(0)


def lengths_for_borders(run: CaseRun[Corpus]) -> torch.Tensor:
    return torch.tensor([0, *map(len, run.tree["documents"])])


def as_bytes(values: torch.Tensor, dtype: type) -> torch.Tensor:
    """These numbers in a file, as uint8."""
    return torch.from_numpy(np.frombuffer(values.numpy().astype(dtype).tobytes(), dtype=np.uint8).copy())


def files(run: CaseRun[Corpus]) -> str | None:
    """The two files have the right bytes."""
    wanted = {
        "tokens": (".bin", as_bytes(tokens(run), run.case.dtype)),
        "borders": (".idx", as_bytes(borders(run), np.int64)),
    }
    for name, (ending, right) in wanted.items():
        found = run.got[name]
        if found is None:
            return f"write_tokens makes no file that ends in {ending}"
        if len(found) != len(right):
            n = len(tokens(run)) if name == "tokens" else len(borders(run))
            return f"the file of {name} has {len(found):,} bytes; {n:,} {name} take {len(right):,}"
        if not torch.equal(found, right):
            return f"the file of {name} has the right size, and other content than it should have"
    return None


def all_windows(run: CaseRun[Corpus]) -> str | None:
    """The windows hold every token once, as int64."""
    wanted = list(tokens(run).split(run.case.window))
    if run.got["n_windows"] != len(wanted):
        return f"len() is {run.got['n_windows']}; {len(tokens(run)):,} tokens make {len(wanted)} windows"
    return _differ("window", run.got["windows"], wanted)


def ends(run: CaseRun[Corpus]) -> str | None:
    past_end, n = run.got["past_end"], run.got["n_windows"]
    if past_end is not None:
        return f"of {n} windows, item {n} {past_end}, and should raise an IndexError"
    below_0 = run.got["below_0"]
    return None if below_0 is None else f"item -1 {below_0}; it should be the last window, or raise an IndexError"


def writes_as_they_come(run: CaseRun[Corpus]) -> str | None:
    """One document at a time is in memory."""
    grown = run.got["streamed_bytes"]
    if grown <= MOST_STREAMED_BYTES:
        return None
    return (
        f"while write_tokens writes {N_STREAMED} documents of {STREAMED_TOKENS:,} tokens, it holds up to "
        f"{grown / KiB:,.0f} KiB; {MOST_STREAMED_BYTES / KiB:,.0f} KiB are enough"
    )


def all_documents(run: CaseRun[Corpus]) -> str | None:
    return _differ("document", run.got["documents"], run.tree["documents"])


def large_windows(run: CaseRun[Corpus]) -> str | None:
    case, places = run.case, run.tree["places"]
    wanted = [one[: case.n_large - place * case.window] for place, one in zip(places, run.tree["large"], strict=True)]
    return _differ("window of a large file", run.got["large"], wanted)


def _differ(what: str, found: list, wanted: list[torch.Tensor]) -> str | None:
    for number, (one, right) in enumerate(zip(found, wanted, strict=True)):
        if not isinstance(one, torch.Tensor):
            return f"{what} {number} is no tensor"
        if one.shape != right.shape:
            return f"{what} {number} has shape {tuple(one.shape)}, and should have {tuple(right.shape)}"
        if not torch.equal(one.to(torch.int64), right):
            return f"{what} {number} holds other tokens than it should"
        if one.dtype != torch.int64:
            return f"{what} {number} is {str(one.dtype).removeprefix('torch.')}, and should be int64"
    return None


def keeps_little(run: CaseRun[Corpus]) -> str | None:
    kept, own = run.got["kept_bytes"], run.got["own_bytes"]
    if own is not None and own > MOST_OWN_BYTES:
        return f"for a file of {run.case.large_mib} MiB, the memory of the process grows by {own / MiB:,.0f} MiB"
    if kept <= MOST_KEPT_BYTES:
        return None
    return (
        f"for a file of {run.case.large_mib} MiB with {N_LARGE_DOCUMENTS:,} documents, the object holds "
        f"{kept / KiB:,.0f} KiB; {MOST_KEPT_BYTES / KiB:,.0f} KiB are enough"
    )


def keeps_nothing_read(run: CaseRun[Corpus]) -> str | None:
    """No window stays in the object once it was read."""
    grown = run.got["read_bytes"]
    if grown <= MOST_READ_BYTES:
        return None
    return (
        f"after up to {N_READ_WINDOWS:,} windows and {N_READ_DOCUMENTS} documents of the large file were read, the "
        f"object holds {grown / KiB:,.0f} KiB more than before"
    )


def no_open_file(run: CaseRun[Corpus]) -> str | None:
    names = run.got["open_files"]
    return f"{names[0]} is an open file, which all workers would share" if names else None


def no_copying_map(run: CaseRun[Corpus]) -> str | None:
    names = run.got["copying_maps"]
    return f"{names[0]} is a map with mode='c'" if names else None
