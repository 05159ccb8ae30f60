"""Lab 07: what workers own of a list that they only read, and the student's files beside HDF5, LMDB and WebDataset.

The last three need packages that no graded cell needs: where one is missing, what to install is printed.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from labkit.store import BookedStore, Books

MAPS = Path("/proc/self/smaps_rollup")
"""Where Linux tells how much of a process's memory nobody else has."""
MiB = 2**20
N_TOKENS, WINDOW, N_READ = 2**20, 256, 1000


class _Private(Dataset):
    """Item i: after reading the next part of some texts, the MiB that this process alone has."""

    def __init__(self, texts: Sequence[str], shares: Sequence[float]) -> None:
        self.texts = texts
        self.ends = [1, *(round(share * len(texts)) for share in shares)]

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> float:
        start = self.ends[index - 1] if index else 0
        for text in self.texts[start : self.ends[index]]:
            text[:1]
        rows = (line.split() for line in MAPS.read_text().splitlines()[1:])
        return sum(int(row[1]) for row in rows if row[0] in ("Private_Clean:", "Private_Dirty:")) / 1024


def private_memory(n: int, shares: Sequence[float] = (0.25, 0.5, 1.0)) -> dict[str, list[float]]:
    """The MiB that a worker alone has after the first of n texts and after these shares of them, for texts in a list
    and in one array. Empty where the system does not tell, or starts workers from nothing.
    """
    if not MAPS.is_file():
        print("this system does not tell what of its memory a process shares")
        return {}
    found = {}
    for name in ("Python list", "NumPy array"):
        texts: Any = [f"sample {index:06d}" for index in range(n)]
        if name == "NumPy array":
            texts = np.array(texts)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="This DataLoader will create")
            loader = DataLoader(_Private(texts, shares), batch_size=None, num_workers=1, multiprocessing_context="fork")
            found[name] = list(loader)
    return found


def compare_formats(write_tokens: Callable, token_windows: Callable) -> None:
    """Print how long a random window of 256 tokens takes to read from the student's file, from HDF5 and from LMDB, each
    as an int64 tensor.
    """
    gen = np.random.default_rng(0)
    tokens = gen.integers(0, 50_257, N_TOKENS).astype(np.uint16)
    places = gen.integers(0, N_TOKENS // WINDOW, N_READ).tolist()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "corpus")
        write_tokens((part.tolist() for part in np.split(tokens, 16)), 50_257, path)
        windows = token_windows(path, 50_257, WINDOW)
        _report("your file", places, lambda place: windows[place], Path(path + ".bin"))
        if h5py := _installed("h5py", "HDF5"):
            file = Path(folder) / "corpus.h5"
            with h5py.File(file, "w") as new:
                new.create_dataset("tokens", data=tokens, chunks=(16 * WINDOW,))
            with h5py.File(file, "r") as opened:
                stored = opened["tokens"]
                _report("HDF5", places, lambda place: _int64(stored[place * WINDOW : (place + 1) * WINDOW]), file)
        if lmdb := _installed("lmdb", "LMDB"):
            file = Path(folder) / "corpus.lmdb"
            with lmdb.open(str(file), map_size=64 * MiB, subdir=False) as env, env.begin(write=True) as new:
                for place, part in enumerate(np.split(tokens, N_TOKENS // WINDOW)):
                    new.put(_key(place), part.tobytes())
            with lmdb.open(str(file), subdir=False, readonly=True, lock=False) as env, env.begin() as opened:
                _report("LMDB", places, lambda place: _int64(np.frombuffer(opened.get(_key(place)), np.uint16)), file)


def read_by_webdataset(write_shards: Callable, n: int = 3000, per_shard: int = 1000) -> None:
    """Have the library read shards that the student's `write_shards` has written, and print how it went."""
    wds = _installed("webdataset", "WebDataset")
    if not wds:
        return
    books = Books({})
    books.begin_job()
    names = write_shards(BookedStore(books), ((f"{i:06d}", {"cls": b"%d" % (i % 10)}) for i in range(n)), per_shard)
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in names]
        for path, name in zip(paths, names, strict=True):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(books.record().files[name])
        keys = [sample["__key__"] for sample in wds.WebDataset(paths, shardshuffle=len(paths)).shuffle(1000)]
    print(f"WebDataset reads {len(keys):,} samples from your {len(names)} shards, first {', '.join(keys[:4])}")


def _int64(tokens: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(tokens.astype(np.int64))


def _key(place: int) -> bytes:
    return place.to_bytes(8, "big")


def _installed(package: str, name: str) -> Any:
    """The package, or None once it is said how to have it."""
    if importlib.util.find_spec(package) is None:
        print(f"{name:12}is not installed here: `pip install {package}`, then run this cell again")
        return None
    return importlib.import_module(package)


def _report(name: str, places: Iterable[int], read: Callable[[int], object], file: Path) -> None:
    began = time.perf_counter()
    for place in places:
        read(place)
    each_us = 1e6 * (time.perf_counter() - began) / N_READ
    print(f"{name:12}{each_us:7.1f} µs for a window of {WINDOW} tokens{file.stat().st_size / MiB:8.1f} MiB on disk")
