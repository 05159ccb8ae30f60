"""Lab 07: what goes wrong where a corpus is written and memory-mapped."""

from __future__ import annotations

import numpy as np
import torch

from labkit.exercises.lab07.memory_map import EARLIER, N_LARGE_DOCUMENTS, Corpus
from labkit.oracles.lab07.mapped import (
    all_documents,
    all_windows,
    as_bytes,
    ends,
    files,
    keeps_little,
    keeps_nothing_read,
    large_windows,
    lengths_for_borders,
    no_copying_map,
    no_open_file,
    tokens,
    writes_as_they_come,
)
from labkit.spec import CANNOT_TELL, CaseRun, Hint, MiB, Oracle


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


def as_in_the_file(run: CaseRun[Corpus]) -> bool:
    of_the_file = torch.uint16 if run.case.dtype is np.uint16 else torch.uint32
    return files(run) is None and run.got["windows"][0].dtype == of_the_file


def not_int64(run: CaseRun[Corpus]) -> bool:
    """The right tokens, in another dtype."""
    found = torch.cat(run.got["windows"])
    return files(run) is None and found.dtype != torch.int64 and torch.equal(found.to(torch.int64), tokens(run))


def objects_for_documents(run: CaseRun[Corpus]) -> bool:
    """As much as a list of numbers takes: a pointer of 8 bytes each, and an object of 32."""
    return not loaded(run) and run.got["kept_bytes"] > 32 * N_LARGE_DOCUMENTS


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


def appended(run: CaseRun[Corpus]) -> bool:
    """The tokens stand behind what lay in the file before."""
    earlier, found = list(EARLIER), run.got["tokens"].tolist()
    return found == earlier + as_bytes(tokens(run), run.case.dtype).tolist()


MEMORY_MAP = Oracle(
    id="07-memory-map",
    judge=(
        files,
        writes_as_they_come,
        all_windows,
        ends,
        all_documents,
        large_windows,
        keeps_little,
        keeps_nothing_read,
        no_open_file,
        no_copying_map,
    ),
    errors={
        "Cannot allocate memory": "There is not enough memory for the whole file, neither to load it, nor for a map "
        "that may be written to, which is promised room for a copy. Map it with mode='r'.",
        "out of bounds for uint16": "A vocabulary of more than 65,536 tokens does not fit into 16 bits. Choose the "
        "dtype from vocab_size.",
        "not a multiple of the data-type size": "The file has numbers of another size than those that were read. Up to "
        "65,536 tokens take two bytes each, more take four, in write_tokens and in TokenWindows.",
    },
    diagnose=(
        Hint(
            appended,
            "What an earlier run has left in the file is still there, before the tokens: mode 'ab' appends. Open the "
            "file once, with 'wb', which empties it.",
        ),
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
            "The index has one entry more than there are documents: it begins with 0 and ends with the number of "
            "tokens.",
        ),
        Hint(
            lambda run: (
                run.got["borders"] is not None
                and torch.equal(run.got["borders"], as_bytes(lengths_for_borders(run).cumsum(0), np.int32))
            ),
            "The index has 4 bytes for each entry. It has to be int64: a corpus may have more than 2^31 tokens.",
        ),
        Hint(
            lambda run: torch.equal(run.got["borders"], as_bytes(lengths_for_borders(run), np.int64)),
            "The index holds how long the documents are. It has to hold where they begin: the running sum.",
        ),
        Hint(
            lambda run: files(run) is None and writes_as_they_come(run) is not None,
            "The tokens of all documents are collected before they are written. documents yields them one by one, so "
            "that a corpus need not fit into memory: write each as it comes.",
        ),
        Hint(
            signed,
            "Large tokens come out negative: the file was read as signed numbers. Read uint16 or uint32.",
        ),
        Hint(
            as_in_the_file,
            "The tokens have the dtype of the file. An embedding takes int64: convert what was cut out of the map, and "
            "only that, with astype(np.int64).",
        ),
        Hint(
            not_int64,
            "The tokens are right, and have another dtype than int64, in which a loss takes its labels. Convert what "
            "was cut out of the map with astype(np.int64).",
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
            lambda run: all_windows(run) is None and run.got["past_end"].startswith("raises"),
            "Past the last window there is an error, and it is no IndexError. That is the one which tells a for loop, "
            "and whatever else takes the dataset for a sequence, that it ends here.",
        ),
        Hint(
            lambda run: all_windows(run) is None and run.got["past_end"].startswith("returns"),
            "A for loop over the dataset never ends: it asks for item 0, 1, 2, ... until an IndexError. A slice past "
            "the end of an array is empty and raises nothing, so raise it yourself where index >= len(self).",
        ),
        Hint(
            lambda run: all_windows(run) is None and run.got["below_0"] is not None,
            "A negative index gets a wrong window without a warning: -1 * window is no place in the file. Raise an "
            "IndexError there as well, or let it count from the end.",
        ),
        Hint(
            loaded,
            "The whole file is in memory. Map it with np.memmap, cut a window out of the map, and convert only that.",
        ),
        Hint(
            objects_for_documents,
            "There is an object for each document. Keep the boundaries in one array, or map them as well.",
        ),
        Hint(
            lambda run: keeps_nothing_read(run) is not None,
            "The object keeps what it has read, in a dictionary, a list or a functools.cache, so it grows until the "
            "whole file is in memory, in each worker anew. Keep nothing: the system keeps the pages of the file, once "
            "for all workers, and drops them if memory is short.",
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
        f"TokenWindows(path, vocab_size={run.case.vocab_size}, window={run.case.window}) on these documents and on a "
        f"file of {run.case.large_mib} MiB"
    ),
    axis="other vocabularies and windows, and a file for which there is not enough memory",
)
