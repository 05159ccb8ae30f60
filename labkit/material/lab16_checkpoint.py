"""Lab 16: what its notebook does with a student's checkpoints: notes who writes and reads what, and kills a real rank.

Nothing is judged.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import torch
from torch import Tensor

from labkit.exercises.lab16.checkpoint import from_bytes, shard_of
from labkit.ranks import Comm, run_ranks
from labkit.ranks.errors import CommError, RankFailed
from labkit.store import Store

Save = Callable[[Store, int, int, int, dict[str, Tensor]], None]
Finish = Callable[[Store, int, int], None]
Load = Callable[[Store, int, int, dict[str, int]], Any]


class FolderStore(Store):
    """Real files in a folder. dies_at: in its n-th write, this process kills itself when half of it is on the disk."""

    def __init__(self, folder: str | Path, dies_at: int = 0) -> None:
        self._folder = Path(folder)
        self._dies_at = dies_at
        self._n_writes = 0

    def _path(self, name: str) -> Path:
        return self._folder / quote(name, safe="")

    def _write(self, name: str, data: bytes) -> None:
        self._n_writes += 1
        if self._n_writes == self._dies_at:
            self._path(name).write_bytes(data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        self._path(name).write_bytes(data)

    def _rename(self, old: str, new: str) -> None:
        os.replace(self._path(old), self._path(new))

    def _read(self, name: str, start: int, size: int | None) -> bytes:
        with open(self._path(name), "rb") as file:
            file.seek(start)
            return file.read(-1 if size is None else size)

    def _list(self, prefix: str) -> list[str]:
        return sorted(name for path in self._folder.iterdir() if (name := unquote(path.name)).startswith(prefix))


def killed_while_saving(save: Save, finish: Finish, load: Load, n_ranks: int = 4, n_later: int = 3) -> list[str]:
    """What happens, a line for each event: n_ranks processes save three steps, of which the third is never whole,
    because rank 2 is killed in a write; then n_later ranks load what is there.
    """
    sizes = {"weight": 1000, "exp_avg": 1000}
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
        job = partial(_save_three_steps, save=save, finish=finish, sizes=sizes, folder=folder)
        try:
            run_ranks(job, n_ranks, backend="gloo")
        except (CommError, RankFailed) as error:
            lines = [f"while step 3 was saved: {str(error).splitlines()[0]}"]
        else:
            lines = ["nobody was killed: rank 2 wrote no file in step 3"]
        cut_short = [
            f"{name} has {path.stat().st_size} bytes"
            for path in sorted(Path(folder).iterdir())
            if 0 < path.stat().st_size < 4 * 1000 // n_ranks and "3" in (name := unquote(path.name))
        ]
        lines += [f"on the disk, cut short: {text}" for text in cut_short]
        for rank in range(n_later):
            found = load(FolderStore(folder), rank, n_later, sizes)
            lines.append(f"rank {rank} of {n_later} loads " + _in_words(found, rank, n_later, sizes))
    return lines


def _whole(sizes: dict[str, int], step: int) -> dict[str, Tensor]:
    return {name: torch.arange(n, dtype=torch.float32) + 10_000 * step for name, n in sizes.items()}


def _save_three_steps(comm: Comm, save: Save, finish: Finish, sizes: dict[str, int], folder: str) -> None:
    """One rank's part. In step 3 rank 2 dies in its second write."""
    for step in (1, 2, 3):
        store = FolderStore(folder, dies_at=2 if step == 3 and comm.rank == 2 else 0)
        save(store, step, comm.rank, comm.world_size, shard_of(_whole(sizes, step), comm.rank, comm.world_size))
        comm.barrier()
        if comm.rank == 0:
            finish(store, step, comm.world_size)
        comm.barrier()


def _in_words(found: Any, rank: int, n: int, sizes: dict[str, int]) -> str:
    if found is None:
        return "nothing"
    step, state = found
    wanted = shard_of(_whole(sizes, step), rank, n)
    same = all(torch.equal(state[name], part) for name, part in wanted.items())
    return f"step {step}, {'to the last bit' if same else 'which is not what was saved'}"


@dataclass(frozen=True)
class Span:
    """Elements of a tensor that a rank wrote or read at once: `Span(rank=1, first=8, end=16)`."""

    rank: int
    first: int
    end: int


class _Noting(Store):
    """Files in this process. Of every write and read, which elements of 0, 1, 2, … were in it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.rank = 0
        self.written: list[Span] = []
        self.read_: list[Span] = []

    def _note(self, to: list[Span], data: bytes) -> None:
        if data and len(data) % 4 == 0:
            numbers = from_bytes(data)
            # Other files are there too, and their bytes are no numbers that follow one another.
            if torch.equal(numbers, numbers[0] + torch.arange(len(numbers))) and float(numbers[0]).is_integer():
                to.append(Span(self.rank, int(numbers[0]), int(numbers[-1]) + 1))

    def _write(self, name: str, data: bytes) -> None:
        self.files[name] = data
        self._note(self.written, data)

    def _rename(self, old: str, new: str) -> None:
        self.files[new] = self.files.pop(old)

    def _read(self, name: str, start: int, size: int | None) -> bytes:
        data = self.files[name][start : None if size is None else start + size]
        self._note(self.read_, data)
        return data

    def _list(self, prefix: str) -> list[str]:
        return sorted(name for name in self.files if name.startswith(prefix))


@dataclass(frozen=True)
class Recut:
    """Who wrote which elements of a tensor, and who read which: `Recut(2, (Span(0, 0, 2),), (Span(0, 0, 2),))`."""

    n_elements: int
    written: tuple[Span, ...]
    read: tuple[Span, ...]


def recut(save: Save, finish: Finish, load: Load, n_old: int = 4, n_new: int = 3, n_elements: int = 24) -> Recut:
    """Save one tensor on n_old ranks and load it on n_new."""
    store, state = _Noting(), {"weight": torch.arange(n_elements, dtype=torch.float32)}
    for store.rank in range(n_old):
        save(store, 1, store.rank, n_old, shard_of(state, store.rank, n_old))
    finish(store, 1, n_old)
    for store.rank in range(n_new):
        load(store, store.rank, n_new, {"weight": n_elements})
    return Recut(n_elements, tuple(store.written), tuple(store.read_))
