"""Lab 07: texts to batch, what their batches look like, and a training loop on the simulated device.

All of it runs the student's own functions. Nothing is judged here.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from labkit.clock import VirtualClock
from labkit.exercises.lab07.slow_loop import Images, images_and_weight, play
from labkit.simdevice import Span, busy_s
from labkit.store import BookedStore, Books

MEDIAN, SPREAD, LONGEST = 90, 1.0, 1024


def text_lengths(n: int) -> list[int]:
    """The lengths of n texts in tokens, as lognormal as those of web pages: median 88, mean 143, 1,024 at most."""
    gen = torch.Generator().manual_seed(0)
    drawn = torch.exp(math.log(MEDIAN) + SPREAD * torch.randn(n, generator=gen))
    return drawn.long().clamp(1, LONGEST).tolist()


@dataclass(frozen=True)
class Batches:
    """The rows of all batches of a dataset, and how wide each batch is.

    rows[b][r]: the lengths of the texts in row r of batch b. widths: of each batch, in tokens.

        Batches((((3,), (5,)), ((2, 2, 1),)), (5, 8))
    """

    rows: tuple[tuple[tuple[int, ...], ...], ...]
    widths: tuple[int, ...]

    @property
    def padding(self) -> float:
        """The share of all places that hold no token."""
        places = sum(width * len(batch) for width, batch in zip(self.widths, self.rows, strict=True))
        return 1 - sum(sum(row) for batch in self.rows for row in batch) / places

    def picture(self) -> tuple[tuple[tuple[int, ...], ...], int]:
        """The batch whose width is nearest to the mean, of several the one nearest to the middle: rows and width."""
        n, mean = len(self.widths), sum(self.widths) / len(self.widths)
        shown = min(range(n), key=lambda number: (abs(self.widths[number] - mean), abs(number - n // 2)))
        return self.rows[shown], self.widths[shown]


def batches_of(lengths: Sequence[int], batches: Sequence[Sequence[int]], width: int | None = None) -> Batches:
    """A text in each row. width: what all are padded to; None pads each batch to its own longest text."""
    rows = tuple(tuple((lengths[index],) for index in batch) for batch in batches)
    return Batches(rows, tuple(width or max(row[0] for row in batch) for batch in rows))


def in_random_batches(lengths: Sequence[int], batch_size: int, width: int | None = None) -> Batches:
    """Texts as they come, in batches of so many."""
    return batches_of(lengths, torch.arange(len(lengths)).split(batch_size), width)


def in_windows(lengths: Sequence[int], windows: Sequence[Sequence[int]], window: int, batch_size: int) -> Batches:
    """Several texts in each row: the windows that `pack` has made."""
    rows = [tuple(lengths[index] for index in one) for one in windows]
    batches = tuple(tuple(rows[start : start + batch_size]) for start in range(0, len(rows), batch_size))
    return Batches(batches, (window,) * len(batches))


@dataclass(frozen=True)
class TimedLoop:
    """A loop on the simulated device. seconds: virtual ones, from start to end. busy: the share in which it computes.

    TimedLoop(0.5, 0.25, (Span(0, "mm", 0.125, 0.25),))
    """

    seconds: float
    busy: float
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class WorkerSpan(Span):
    """What a worker does, in a row of its own."""

    worker: int = 0

    @property
    def lane(self) -> str:
        return f"worker {self.worker}"


ON_THE_HOST = {"load": "host loads", "Python": "host works", "start workers": "host works"}
"""The kind of what the host does, by its name."""
LOOP = Images(n=128, n_epochs=1, step_ms=12.0, start_ms=20.0)


def timed(train: Callable, case: Images = LOOP) -> TimedLoop:
    """What `train` of 07-slow-loop did when."""
    tree = images_and_weight(case, torch.Generator().manual_seed(0))
    _, sim, loaders = play(train, case, tree)
    n_workers = 1 + max((load.worker for load in loaders.loads), default=-1)
    # The rows of a chart are ordered by these numbers, the host's -1 last.
    of_workers = (
        WorkerSpan(load.worker - n_workers - 1, "load", load.start_s, load.end_s, "worker loads", worker=load.worker)
        for load in loaders.loads
    )
    # What takes no time worth drawing is left out.
    spans = tuple(
        replace(span, kind=ON_THE_HOST.get(span.name, span.kind))
        for span in sim.trace
        if span.end_s - span.start_s > 1e-4
    )
    return TimedLoop(sim.now_s, busy_s(sim.trace, "kernel") / sim.now_s, (*spans, *of_workers))


def through_buffer(write_shards: Callable, read_shards: Callable, n: int, buffer_size: int) -> list[int]:
    """The order in which a stream yields n empty samples of a single shard."""
    books = Books({})
    books.begin_job()
    store = BookedStore(books)
    names = write_shards(store, ((str(index), {"x": b""}) for index in range(n)), n)
    return [int(key) for key, _ in read_shards(store, names, buffer_size, 0)]


def places_moved(order: Sequence[int]) -> float:
    """How many places away from its old one a sample comes, on average."""
    return sum(abs(before - after) for after, before in enumerate(order)) / len(order)


def images_found(cached_images: Callable, share: float, n: int = 2000) -> tuple[float, float]:
    """The share of an epoch's images that a cache with room for `share` of all has: one that throws out what was used
    least recently, and the student's. n: images of one byte each.
    """
    gen = torch.Generator().manual_seed(0)
    first, second = (torch.randperm(n, generator=gen).tolist() for _ in range(2))
    room = round(share * n)
    recent: dict[int, None] = {}
    decoded: list[int] = []

    def decode(file: bytes) -> torch.Tensor:
        decoded.append(0)
        return torch.zeros(1, dtype=torch.uint8)

    dataset = cached_images([b""] * n, decode, lambda image: image, room)
    n_found = 0
    for epoch, order in enumerate((first, second)):
        decoded.clear()
        for index in order:
            n_found += epoch and index in recent
            recent.pop(index, None)
            recent[index] = None
            if len(recent) > room:
                del recent[next(iter(recent))]
            dataset[index]
    return n_found / n, 1 - len(decoded) / n


def share_of_waiting(prefetch: Callable, depth: int, n: int = 2000) -> float:
    """The share of the time in which the GPU waits for a batch: steps and loading take a second on average, both at
    random. n: batches.
    """
    gen = torch.Generator().manual_seed(0)
    load_s, step_s = torch.empty(2, n).exponential_(generator=gen).tolist()
    with VirtualClock() as clock:
        for number, _ in enumerate(prefetch(lambda index: clock.sleep(load_s[index]), n, depth, clock)):
            clock.sleep(step_s[number])
        return 1 - sum(step_s) / clock.now_s


@dataclass(frozen=True)
class Resident:
    """What a process has more in memory than before, in MiB: own_mib of its own, file_mib of mapped files.

    Resident(own_mib=0.1, file_mib=6.2)
    """

    own_mib: float
    file_mib: float


FILE_MIB, N_READ, WINDOW = 16, 100, 256


def resident_after(write_tokens: Callable, token_windows: Callable) -> dict[str, Resident]:
    """What 100 random windows of a file of 16 MiB take if the file is loaded, and by the student's dataset. Empty where
    the system does not tell.
    """
    if not STATUS.is_file():
        print("this system does not tell what of a process is in memory")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "corpus")
        gen = np.random.default_rng(0)
        n = FILE_MIB * 2**20 // 2
        write_tokens((gen.integers(0, 50_257, n // 16).tolist() for _ in range(16)), 50_257, path)
        places = gen.integers(0, n // WINDOW, N_READ).tolist()

        def loaded() -> object:
            tokens = np.fromfile(path + ".bin", dtype=np.uint16)
            return tokens, [tokens[place * WINDOW : (place + 1) * WINDOW] for place in places]

        def mapped() -> object:
            windows = token_windows(path, 50_257, WINDOW)
            return windows, [windows[place] for place in places]

        return {"np.fromfile": _growth(loaded), "your TokenWindows": _growth(mapped)}


STATUS = Path("/proc/self/status")


def _growth(work: Callable[[], object]) -> Resident:
    before = _resident_mib()
    kept = work()
    after = _resident_mib()
    del kept
    return Resident(*(now - then for then, now in zip(before, after, strict=True)))


def _resident_mib() -> tuple[float, float]:
    """Memory of its own, and pages of files (also of files that lie in memory)."""
    kib = {line.split()[0]: int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("Rss")}
    return kib["RssAnon:"] / 1024, (kib["RssFile:"] + kib["RssShmem:"]) / 1024
