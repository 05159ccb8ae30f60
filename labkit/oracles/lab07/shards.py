"""Lab 07: what is true of tar shards and of a stream through a buffer.

What the usual mistakes look like stands beside the oracle.
"""

from __future__ import annotations

import io
import math
import tarfile
from itertools import pairwise
from typing import Any

import torch

from labkit.exercises.lab07.tar_shards import Shards, key_of
from labkit.oracles.hints import once
from labkit.spec import CaseRun

ENOUGH = 20
"""From so many samples on, an order that is not random is no accident."""
FAR = 0.15
"""Of the buffer's size: a buffer moves a sample by 0.5 to 0.7 times its size on average, hardly ever by less than 0.3.
One that holds four shards, and is emptied after each, moves it by 0.08.
"""


MOST_IN_ORDER = 0.5
"""Of neighbours in a stream, those that were read one after the other: a random one of many leaves hardly any."""
LARGE = 8
"""A buffer from which on they are few."""


def result(run: CaseRun[Shards]) -> dict[str, Any]:
    """What the only job returned."""
    return run.got["jobs"][0]


def n_shards(case: Shards) -> int:
    return math.ceil(case.n / case.per_shard)


@once
def written(run: CaseRun[Shards]) -> list[list[tuple[str, bytes]]] | None:
    """The files in each shard, in the order of its names; None where one is no tar file. The one that was cut off in
    the meantime is left out.
    """
    found = []
    for name in result(run)["names"]:
        if name == result(run)["broken"]:
            found.append([])
            continue
        try:
            with tarfile.open(fileobj=io.BytesIO(run.books.files[name])) as tar:
                found.append([(one.name, tar.extractfile(one).read()) for one in tar if one.isfile()])
        except (tarfile.TarError, KeyError):
            return None
    return found


def whole_shards(run: CaseRun[Shards]) -> str | None:
    """The shards hold the files of all samples, in order."""
    case, names = run.case, result(run)["names"]
    if len(names) != n_shards(case):
        return f"write_shards returns {len(names)} names; {n_shards(case)} shards hold {case.n} samples"
    if written(run) is None:
        return "write_shards names a shard that is no tar file in the store"
    for number, files in enumerate(written(run)):
        if names[number] == result(run)["broken"]:
            continue
        wanted = files_of(run, number)
        if [name for name, _ in files] != [name for name, _ in wanted]:
            return f"shard {number} holds the files {_some(files)}, and should hold {_some(wanted)}"
        if files != wanted:
            return f"shard {number} holds files with other bytes than they had"
    return None


@once
def files_of(run: CaseRun[Shards], shard: int) -> list[tuple[str, bytes]]:
    case = run.case
    return [
        (f"{key_of(index)}.{name}", bytes(part.tolist()))
        for index in range(shard * case.per_shard, min((shard + 1) * case.per_shard, case.n))
        for name, part in run.tree["parts"][index].items()
    ]


def _some(files: list[tuple[str, bytes]]) -> str:
    names = [name for name, _ in files]
    return f"{', '.join(names[:4])}, ... ({len(names)} files)" if len(names) > 4 else str(names)


def every_sample(run: CaseRun[Shards]) -> str | None:
    """Each sample comes once and whole."""
    got = result(run)
    missing = sorted({key_of(index) for index in range(run.case.n)} - set(got["keys"]))
    if missing:
        return f"{_samples(missing)} never yielded"
    if len(got["keys"]) > run.case.n:
        return f"{len(got['keys'])} samples are yielded; there are {run.case.n}"
    for key, parts in zip(got["keys"], got["parts"], strict=True):
        wanted = run.tree["parts"][int(key)]
        if parts.keys() != wanted.keys():
            return f"sample {key} has the parts {sorted(parts)}, and should have {sorted(wanted)}"
        if not all(torch.equal(parts[name], wanted[name]) for name in wanted):
            return f"sample {key} has other bytes than it had"
    return None


def _samples(keys: list[str]) -> str:
    return f"sample {keys[0]} is" if len(keys) == 1 else f"{len(keys)} samples are"


@once
def read_order(run: CaseRun[Shards]) -> list[int]:
    """The samples in the order in which the first stream has read them: shard after shard."""
    case, names = run.case, result(run)["names"]
    order: list[int] = []
    for name in dict.fromkeys(result(run)["read"]):
        shard = names.index(name)
        order += range(shard * case.per_shard, min((shard + 1) * case.per_shard, case.n))
    return order


def shards_in_order(run: CaseRun[Shards]) -> bool:
    """Two streams with two seeds read the shards in the order of their names: of few shards, one may by accident."""
    streams = (list(dict.fromkeys(result(run)[name])) for name in ("read", "read_other"))
    return all(read == result(run)["names"] for read in streams)


@once
def displacement(run: CaseRun[Shards]) -> float:
    """How far a sample is moved on average, between its place among those that are read and among those yielded."""
    place = {key_of(index): at for at, index in enumerate(read_order(run))}
    moved = [abs(place[key] - at) for at, key in enumerate(result(run)["keys"])]
    return sum(moved) / len(moved)


@once
def ahead(run: CaseRun[Shards]) -> int:
    """The most samples that were held, had the stream read them one by one."""
    place = {key_of(index): at for at, index in enumerate(read_order(run))}
    return max(place[key] - at + 1 for at, key in enumerate(result(run)["keys"]))


def as_read(run: CaseRun[Shards]) -> bool:
    """Most samples come just after the one that was read before them: the buffer gives back its newest or oldest."""
    if not is_long(run) or run.case.buffer_size < LARGE:
        return False
    place = {key_of(index): at for at, index in enumerate(read_order(run))}
    places = [place[key] for key in result(run)["keys"]]
    return sum(now == before + 1 for before, now in pairwise(places)) > MOST_IN_ORDER * (len(places) - 1)


def within_buffer(run: CaseRun[Shards]) -> str | None:
    """No sample comes earlier than its buffer allows, and no shard is read before it is needed."""
    case, got = run.case, result(run)
    if ahead(run) > max(case.buffer_size, 1):
        return f"a sample comes {ahead(run) - 1} places early; a buffer of {case.buffer_size} holds too few for that"
    for at, n_reads in enumerate(got["n_reads"]):
        # A shard more may be open: its first sample is the next to come.
        needed = min(math.ceil((at + max(case.buffer_size, 1)) / case.per_shard) + 1, n_shards(case))
        # One that is short came early.
        needed = min(needed + (case.n % case.per_shard > 0), n_shards(case))
        if n_reads > needed:
            return f"{n_reads} shards are read before sample {at} is yielded; {needed} are enough"
    return None


def is_long(run: CaseRun[Shards]) -> bool:
    return run.case.n >= ENOUGH


def is_short_buffer(run: CaseRun[Shards]) -> bool:
    return run.case.buffer_size <= 4


def shuffled(run: CaseRun[Shards]) -> str | None:
    """Shards and samples come in random order, another one with each seed."""
    case, got = run.case, result(run)
    if got["again"] != got["keys"]:
        return "a second stream with the same seed has another order"
    if is_long(run):
        if shards_in_order(run):
            return "the shards are read in the order of their names"
        if not is_short_buffer(run) and displacement(run) < FAR * min(case.buffer_size, case.n):
            return (
                f"samples are moved by {displacement(run):.1f} places on average within a buffer of {case.buffer_size}"
            )
        if as_read(run):
            return "most samples come just after the one that was read before them"
        if got["other"] == got["keys"]:
            return "another seed gives the same order"
    return None


def touches_nothing(run: CaseRun[Shards]) -> str | None:
    """The list of names and the global generators are as they were."""
    got = result(run)
    if not got["names_left"]:
        return "the list `names` that read_shards was given was changed in place"
    if got["changed"]:
        return f"after a stream the global random numbers of {got['changed'][0]} go on from another state"
    return None


def names_the_shard(run: CaseRun[Shards]) -> str | None:
    """The error on a shard that is cut off says which one it is."""
    got = result(run)
    if got["error"] is None:
        return f"the shard {got['broken']!r} was cut off in the middle, and the stream ends without an error"
    if got["broken"] not in got["error"]:
        return f"the shard {got['broken']!r} was cut off, and the error does not name it: {got['error'][:80]}"
    return None
