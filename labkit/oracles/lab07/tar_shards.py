"""Lab 07: what goes wrong where shards are written and read through a buffer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from labkit.exercises.lab07.tar_shards import Shards, key_of
from labkit.oracles.lab07.shards import (
    ahead,
    as_read,
    displacement,
    every_sample,
    is_long,
    is_short_buffer,
    n_shards,
    names_the_shard,
    result,
    shards_in_order,
    shuffled,
    touches_nothing,
    whole_shards,
    within_buffer,
)
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Oracle


def in_long_streams(when) -> Any:
    """A diagnosis of the order, about which a short stream says nothing."""
    return lambda run: CANNOT_TELL if not is_long(run) else when(run)


def parts_of(run: CaseRun[Shards]) -> list[torch.Tensor]:
    return [part for parts in result(run)["parts"] for part in parts.values()]


def loses_the_rest(run: CaseRun[Shards]) -> object:
    """One shard is missing. CANNOT_TELL where the shards divide the samples."""
    case = run.case
    if case.n % case.per_shard == 0:
        return CANNOT_TELL
    return len(result(run)["names"]) == n_shards(case) - 1


def shards_only(run: CaseRun[Shards]) -> object:
    """No sample is moved within what is read. CANNOT_TELL of a buffer too small to move one far."""
    return CANNOT_TELL if is_short_buffer(run) else every_sample(run) is None and displacement(run) == 0


def shard_by_shard(run: CaseRun[Shards]) -> bool:
    """All samples of a shard come before any of the next one, and not in their order."""
    shards = [int(key) // run.case.per_shard for key in result(run)["keys"]]
    is_mixed = displacement(run) > 0
    return every_sample(run) is None and is_mixed and sum(a != b for a, b in pairwise(shards)) == n_shards(run.case) - 1


def in_order_of_reading(run: CaseRun[Shards]) -> object:
    """CANNOT_TELL of a stream or a buffer that is too short to tell."""
    return as_read(run) if is_long(run) and not is_short_buffer(run) else CANNOT_TELL


def last_parts_only(run: CaseRun[Shards]) -> object:
    """CANNOT_TELL where samples have one part."""
    if len(run.case.extensions) == 1:
        return CANNOT_TELL if every_sample(run) is None else False
    found = result(run)["parts"]
    return bool(found) and all(list(parts) == [run.case.extensions[-1]] for parts in found)


def other_extensions(run: CaseRun[Shards]) -> object:
    """Only where an extension has a dot, samples have other parts. CANNOT_TELL where none has one."""
    if all("." not in name for name in run.case.extensions):
        return CANNOT_TELL if every_sample(run) is None else False
    return any(set(parts) != set(run.case.extensions) for parts in result(run)["parts"])


def missing(run: CaseRun[Shards]) -> set[str]:
    """The samples that are never yielded."""
    return {key_of(index) for index in range(run.case.n)} - set(result(run)["keys"])


def last_of_shards(case: Shards) -> set[str]:
    return {key_of(index) for index in (*range(case.per_shard - 1, case.n, case.per_shard), case.n - 1)}


TAR_SHARDS = Oracle(
    id="07-tar-shards",
    judge=(whole_shards, every_sample, within_buffer, shuffled, touches_nothing, names_the_shard),
    budgets=(
        Budget(
            "opens",
            # Written once and read by four streams; the check cuts one off.
            lambda run: 5 * n_shards(run.case) + 2,
            "A shard is opened for each of its samples. Read a shard whole, once, and take the samples out of what "
            "was read.",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: any(result(run)["parts"]) and not any(map(len, parts_of(run))),
            "Every file in the shards is empty: TarInfo begins with a size of 0, and addfile writes `size` bytes. Set "
            "info.size = len(data).",
        ),
        Hint(
            lambda run: len(set(result(run)["names"])) < len(result(run)["names"]),
            "Several shards have one name, so each replaces the one before. Put their number into it.",
        ),
        Hint(
            loses_the_rest,
            "The last samples do not fill a shard, and are lost. Write what is left when the loop ends.",
        ),
        Hint(
            lambda run: len(result(run)["names"]) == run.case.n > n_shards(run.case),
            "Every sample has a shard to itself, so as many files are opened as before. Collect per_shard samples, "
            "then write them.",
        ),
        Hint(
            lambda run: whole_shards(run) is None and missing(run) == last_of_shards(run.case),
            "The last sample of each shard is never yielded: it is complete only when the shard ends, and no other key "
            "follows it. Yield it after the loop.",
        ),
        Hint(
            lambda run: (
                whole_shards(run) is None
                and every_sample(run) is not None
                and 0 < len(missing(run)) <= run.case.buffer_size
            ),
            "What is in the buffer when the last shard ends is never yielded.",
        ),
        Hint(
            last_parts_only,
            "Of each sample there is only the part that was read last: it has replaced the others. The files of a "
            "sample come one by one, so add each to the dictionary of its sample.",
        ),
        Hint(
            other_extensions,
            "The key of a sample ends at the first dot of a file's name, and its extension begins there: "
            "000007.seg.png is the part seg.png of the sample 000007.",
        ),
        Hint(
            in_long_streams(shards_only),
            "Only the shards are shuffled: within each of them the samples come as they were written. Keep a buffer, "
            "and yield a random one of it.",
        ),
        Hint(
            in_order_of_reading,
            "The samples come in the order in which they are read, because the buffer gives back the newest one, as "
            "pop() does, or the oldest, as pop(0). Take a random one.",
        ),
        Hint(
            in_long_streams(lambda run: CANNOT_TELL if run.case.buffer_size == 1 else shard_by_shard(run)),
            "The buffer is emptied at the end of each shard, so samples of different shards never mix. Keep it from "
            "shard to shard, and empty it after the last one.",
        ),
        Hint(
            in_long_streams(lambda run: every_sample(run) is None and shards_in_order(run)),
            "The shards are always read in the same order, so a sample from the end never comes early. Shuffle their "
            "names first.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if within_buffer(run) is None
                else every_sample(run) is None and result(run)["n_reads"][0] == n_shards(run.case)
            ),
            "All shards are read before the first sample is yielded. Read the next one only when the buffer needs it.",
        ),
        Hint(
            lambda run: (
                CANNOT_TELL
                if within_buffer(run) is None
                else every_sample(run) is None and ahead(run) == run.case.buffer_size + 1
            ),
            "The buffer holds one sample more than buffer_size.",
        ),
        Hint(
            lambda run: every_sample(run) is None and result(run)["again"] != result(run)["keys"],
            "The order comes from a generator that goes on from stream to stream. Make one from the seed at the start "
            "of each stream.",
        ),
        Hint(
            in_long_streams(lambda run: every_sample(run) is None and result(run)["other"] == result(run)["keys"]),
            "The seed changes nothing. Make a generator from it.",
        ),
        Hint(
            lambda run: every_sample(run) is None and not result(run)["names_left"],
            "The list of names is shuffled in place, and it belongs to the caller. Shuffle a copy: "
            "rng.sample(names, len(names)).",
        ),
        Hint(
            lambda run: every_sample(run) is None and bool(result(run)["changed"]),
            "The order comes from a global generator, from which the model's dropout or other streams draw as well. "
            "Use a random.Random of the stream's own.",
        ),
        Hint(
            lambda run: every_sample(run) is None and result(run)["error"] is None,
            "A shard that is cut off ends without an error, and its samples are missing in every epoch. Catch nothing, "
            "or raise an error of your own.",
        ),
        Hint(
            lambda run: every_sample(run) is None and names_the_shard(run) is not None,
            "With ten thousand shards, an error that does not name the shard is of no use. Catch tarfile.TarError, and "
            "raise one with the shard's name in its text.",
        ),
    ),
    call=lambda run: (
        f"write_shards(store, <{run.case.n} samples>, per_shard={run.case.per_shard}), and read_shards(store, names, "
        f"buffer_size={run.case.buffer_size}, seed={run.case.seed})"
    ),
    axis="other numbers of samples, extensions with a dot, and buffers of one sample",
)
