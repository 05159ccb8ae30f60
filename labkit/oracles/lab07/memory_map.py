"""Lab 07: what is true of a memory-mapped file of tokens, and what the usual mistakes look like."""

from __future__ import annotations

import numpy as np
import torch

from labkit.exercises.lab07.memory_map import N_LARGE_DOCUMENTS, Corpus
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Hint, KiB, MiB, Oracle

MOST_KEPT_BYTES = 8 * (N_LARGE_DOCUMENTS + 1) + 256 * KiB
"""The borders as numbers of 8 bytes, and what objects take."""
MOST_OWN_BYTES = 16 * MiB
"""By how much a process may grow meanwhile. What is loaded is 96 MiB or more."""


@once
def tokens(run: CaseRun[Corpus]) -> torch.Tensor:
    return torch.cat(run.tree["documents"])


@once
def borders(run: CaseRun[Corpus]) -> torch.Tensor:
    return torch.tensor([0, *map(len, run.tree["documents"])]).cumsum(0)


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


def no_open_file(run: CaseRun[Corpus]) -> str | None:
    names = run.got["open_files"]
    return f"{names[0]} is an open file, which all workers would share" if names else None


def no_copying_map(run: CaseRun[Corpus]) -> str | None:
    names = run.got["copying_maps"]
    return f"{names[0]} is a map with mode='c'" if names else None


def loaded(run: CaseRun[Corpus]) -> bool:
    half = run.case.large_mib * MiB / 2
    return max(run.got["kept_bytes"], run.got["own_bytes"] or 0) > half


def size_of_tokens(run: CaseRun[Corpus]) -> float:
    """Bytes per token in the file."""
    return len(run.got["tokens"]) / len(tokens(run))


def wraps(run: CaseRun[Corpus]) -> object:
    """16 bits for every vocabulary. CANNOT_TELL where they are enough."""
    if run.case.dtype is np.uint16:
        return CANNOT_TELL if files(run) is None else False
    return size_of_tokens(run) == 2


def wide(run: CaseRun[Corpus]) -> object:
    return size_of_tokens(run) in (4, 8) and size_of_tokens(run) > np.dtype(run.case.dtype).itemsize


def read_as_16_bits(run: CaseRun[Corpus]) -> object:
    """A file of 32 bits, read as if it were of 16. CANNOT_TELL where it is of 16."""
    if run.case.dtype is np.uint16:
        return CANNOT_TELL if all_windows(run) is None else False
    wrong = as_bytes(tokens(run), np.uint32).numpy().view(np.uint16).astype(np.int64)
    return torch.equal(torch.cat(run.got["windows"]).to(torch.int64), torch.from_numpy(wrong))


def not_int64(run: CaseRun[Corpus]) -> bool:
    return files(run) is None and run.got["windows"][0].dtype != torch.int64


def last_window_lost(run: CaseRun[Corpus]) -> object:
    if len(tokens(run)) % run.case.window == 0:
        return CANNOT_TELL
    return run.got["n_windows"] == len(tokens(run)) // run.case.window


def signed(run: CaseRun[Corpus]) -> object:
    """Large tokens come out negative. CANNOT_TELL where all are small."""
    limit = 2 ** (8 * np.dtype(run.case.dtype).itemsize - 1)
    if int(tokens(run).max()) < limit:
        return CANNOT_TELL
    return any(bool((one < 0).any()) for one in run.got["windows"])


MEMORY_MAP = Oracle(
    id="07-memory-map",
    judge=(files, all_windows, all_documents, large_windows, keeps_little, no_open_file, no_copying_map),
    errors={
        "Cannot allocate memory": "There is not enough memory for the whole file, neither to load it, nor for a map "
        "that may be written to, which is promised room for a copy. Map it with mode='r'.",
        "out of bounds for uint16": "A vocabulary of more than 65,536 tokens does not fit into 16 bits. Choose the "
        "dtype from vocab_size.",
    },
    diagnose=(
        Hint(
            wraps,
            "16 bits hold numbers up to 65,535: with a larger vocabulary, tokens wrap around and nobody notices. "
            "Choose the dtype from vocab_size.",
        ),
        Hint(
            lambda run: files(run) is not None and wide(run),
            "A token takes more bytes than it needs: two are enough for a vocabulary of at most 65,536, and four for "
            "any other.",
        ),
        Hint(
            lambda run: len(run.got["borders"]) == 8 * len(run.tree["documents"]),
            "The index has one border more than there are documents: it begins with 0 and ends with the number of "
            "tokens.",
        ),
        Hint(
            signed,
            "Large tokens come out negative: the file was read as signed numbers. Read uint16 or uint32.",
        ),
        Hint(
            not_int64,
            "The tokens have the dtype of the file. An embedding takes int64: convert what was cut out of the map, and "
            "only that, with astype(np.int64).",
        ),
        Hint(
            read_as_16_bits,
            "The file is read as 16 bits where it holds 32. The dtype depends on vocab_size there as well.",
        ),
        Hint(
            last_window_lost,
            "The last window is lost, because it is not full. Round up in len().",
        ),
        Hint(
            loaded,
            "The whole file is in memory. Map it with np.memmap, cut a window out of the map, and convert only that.",
        ),
        Hint(
            lambda run: keeps_little(run) is not None,
            "There is an object for each document. Keep the borders in one array, or map them as well.",
        ),
        Hint(
            lambda run: bool(run.got["copying_maps"]),
            "mode='c' promises that you may write to the map without changing the file, so the system has to have room "
            "for a copy of all of it. mode='r' needs none.",
        ),
        Hint(
            lambda run: bool(run.got["open_files"]),
            "An open file has one position. After the fork all workers share it: one seeks while another reads, and "
            "they get each other's tokens. Map the file, or open it for each window.",
        ),
    ),
    call=lambda run: (
        f"write_tokens(<{run.case.n_documents} documents>, vocab_size={run.case.vocab_size}, path), and "
        f"TokenWindows(path, vocab_size={run.case.vocab_size}, window={run.case.window})"
    ),
    axis="other vocabularies and windows, and a file for which there is not enough memory",
)
