"""Lab 07: small files in tar shards, and a stream of their samples through a shuffle buffer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.generators import global_generators
from labkit.spec import Answer, Case, Exercise, Run
from labkit.store import Store

OTHER_SEED = 1009


@dataclass(frozen=True)
class Shards(Case):
    """n samples, per_shard in each shard but the last, read through a buffer of buffer_size. Then shard `broken` (from
    0 on) is cut off in the middle.
    """

    n: int
    per_shard: int
    buffer_size: int
    extensions: tuple[str, ...] = ("jpg", "cls")
    broken: int = 0
    seed: int = 0


def samples_of(case: Shards, gen: torch.Generator) -> dict[str, Any]:
    """parts[i][extension]: the bytes of sample i, as uint8."""
    sizes = torch.randint(20, 1500, (case.n, len(case.extensions)), generator=gen).tolist()
    return {
        "parts": [
            {
                extension: torch.randint(0, 256, (size,), dtype=torch.uint8, generator=gen)
                for extension, size in zip(case.extensions, of_sample, strict=True)
            }
            for of_sample in sizes
        ]
    }


def key_of(index: int) -> str:
    """ "000012" """
    return f"{index:06d}"


class Watched(Store):
    """A store that notes what is read through it. names: of the files, one for each read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.names: list[str] = []

    def _write(self, name: str, data: bytes) -> None:
        self._store.write(name, data)

    def _rename(self, old: str, new: str) -> None:
        self._store.rename(old, new)

    def _read(self, name: str, start: int, size: int | None) -> bytes:
        self.names.append(name)
        return self._store.read(name, start, size)

    def _list(self, prefix: str) -> list[str]:
        return self._store.list(prefix)


def drive(ans, case: Shards, tree: dict, stage) -> dict[str, Any]:
    """names: what `write_shards` returned. keys and n_reads: of each sample that was yielded, and how many shards had
    been read by then. parts: of these samples. read: what was read, in order. changed: whose global generators go on
    from another state after that; names_left: whether the list of names stayed as it was. again, other: the keys of a
    second stream, with the same seed and with another one. read_other: what that one has read. error: of a stream whose
    shard `broken` was cut off. broken: the name of that shard.
    """
    samples = [
        (key_of(i), {name: bytes(part.tolist()) for name, part in of.items()}) for i, of in enumerate(tree["parts"])
    ]
    made = ans.write_shards(stage.store, iter(samples), case.per_shard)
    if made is None:
        raise TypeError("write_shards returned None, and should return the names of the shards")
    names = [str(name) for name in made]

    def stream(seed: int) -> Iterable[tuple[str, dict[str, bytes]]]:
        return ans.read_shards(store, list(names), case.buffer_size, seed)

    store = Watched(stage.store)
    keys, parts, n_reads, mine = [], [], [], list(names)
    with global_generators(7) as changed:
        for key, of_sample in ans.read_shards(store, mine, case.buffer_size, case.seed):
            keys.append(str(key))
            parts.append({name: torch.tensor(list(data), dtype=torch.uint8) for name, data in of_sample.items()})
            n_reads.append(len(set(store.names)))
    read = list(store.names)
    again = [str(key) for key, _ in stream(case.seed)]
    store.names.clear()
    other = [str(key) for key, _ in stream(case.seed + OTHER_SEED)]
    read_other = list(store.names)
    broken = names[case.broken]
    data = stage.store.read(broken)
    # Within the content of its first file: a tar file's header takes 512 bytes.
    stage.store.write(broken, data[: 512 + 10])
    error = None
    try:
        for _ in stream(case.seed):
            pass
    except Exception as found:
        error = f"{type(found).__name__}: {found}"
    return {
        "names": names,
        "keys": keys,
        "n_reads": n_reads,
        "read": read,
        "parts": parts,
        "again": again,
        "other": other,
        "read_other": read_other,
        "changed": changed,
        "names_left": mine == names,
        "error": error,
        "broken": broken,
    }


TAR_SHARDS = Exercise(
    id="07-tar-shards",
    title="Many small files in a few large ones",
    points=0.4,
    minutes=30,
    difficulty=2,
    answers=(Answer("write_shards"), Answer("read_shards")),
    public=(
        Shards(60, 8, 20),
        Shards(45, 10, 12, ("jpg", "seg.png", "cls"), broken=2, seed=3),
        Shards(7, 10, 30),
        Shards(24, 3, 1, broken=3),
    ),
    inputs=samples_of,
    drive=drive,
    run=Run(store=True),
    optional=True,
)
