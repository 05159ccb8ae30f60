"""Lab 07: a file of tokens that is larger than the memory, and its windows."""

from __future__ import annotations

import contextlib
import gc
import io
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from labkit.spec import Answer, Case, Exercise, MiB, Run

MEMORY_BYTES = 192 * MiB
N_LARGE_DOCUMENTS = 20_000
"""Documents in the index of the large file."""
N_LARGE_WINDOWS = 3
N_READ_WINDOWS, N_READ_DOCUMENTS = 2000, 40
"""Of the large file, to see whether the object keeps what it has read."""
N_STREAMED, STREAMED_TOKENS = 256, 8192
"""Documents that are written as they come, 4 MiB of 16-bit numbers in all, and the tokens of each."""
EARLIER = bytes(range(48))
"""What an earlier run has left in both files."""


@dataclass(frozen=True)
class Corpus(Case):
    """n_documents of 1 to `longest` tokens, read in windows. Then a file of large_mib MiB that is nearly empty: what is
    not written takes no disk.
    """

    n_documents: int
    longest: int
    window: int
    vocab_size: int = 50_257
    large_mib: int = 96

    @property
    def dtype(self) -> type:
        """The smallest unsigned numbers that hold every token."""
        return np.uint16 if self.vocab_size <= 2**16 else np.uint32

    @property
    def n_large(self) -> int:
        """The tokens in the large file: the last window is cut short."""
        return self.large_mib * MiB // np.dtype(self.dtype).itemsize - self.window // 2


def corpus(case: Corpus, gen: torch.Generator) -> dict[str, Any]:
    """documents: int64, with the last token of the vocabulary among them. large: what is written into the large file,
    (window,) each, and at which windows; the last one is the file's last.
    """
    lengths = torch.randint(1, case.longest + 1, (case.n_documents,), generator=gen).tolist()
    documents = [torch.randint(0, case.vocab_size, (length,), generator=gen) for length in lengths]
    documents[-1][-1] = case.vocab_size - 1
    n_windows = -(-case.n_large // case.window)
    places = torch.randint(0, n_windows - 1, (N_LARGE_WINDOWS - 1,), generator=gen).tolist()
    return {
        "documents": documents,
        "large": torch.randint(1, case.vocab_size, (N_LARGE_WINDOWS, case.window), generator=gen),
        "places": [*places, n_windows - 1],
    }


def drive(ans, case: Corpus, tree: dict, stage) -> dict[str, Any]:
    """tokens, borders: the bytes of the two files that `write_tokens` made where EARLIER lay, None where that still
    lies there. streamed_bytes: the most that Python's and NumPy's memory grew while it wrote many documents. windows:
    all of a small file, in order, n_windows what len() says, and past_end what came of the index after the last one,
    None where that was an IndexError. below_0: what came of index -1, None where that was an IndexError or the last
    window. documents: all of them. large: windows of the large file. Of its object,
    kept_bytes: what it holds in Python's and NumPy's memory; own_bytes: by how much the process's own memory grew
    meanwhile, None where the system does not tell; read_bytes: what it holds more after many reads; open_files,
    copying_maps: its attributes that are open files, or maps with mode="c".
    """
    written, right, large = (str(stage.tmp / name) for name in ("written", "right", "large"))
    for ending in (".bin", ".idx"):
        Path(written + ending).write_bytes(EARLIER)
    ans.write_tokens((document.tolist() for document in tree["documents"]), case.vocab_size, written)
    streamed_bytes = peak_bytes(lambda: ans.write_tokens(streamed(), case.vocab_size, str(stage.tmp / "streamed")))
    lay_down(right, case, tree["documents"])
    small = ans.TokenWindows(right, case.vocab_size, case.window)
    windows = [small[index] for index in range(len(small))]
    documents = [small.document(number) for number in range(case.n_documents)]

    lay_down_large(large, case, tree)
    before_bytes = own_bytes()
    tracemalloc.start()
    try:
        of_large = ans.TokenWindows(large, case.vocab_size, case.window)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    of_places = [of_large[place] if place < len(of_large) else torch.empty(0).long() for place in tree["places"]]
    after_bytes = own_bytes()
    held = vars(of_large).items()
    return {
        "tokens": content(written + ".bin"),
        "borders": content(written + ".idx"),
        "streamed_bytes": streamed_bytes,
        "n_windows": len(small),
        "windows": windows,
        "past_end": past_end(small),
        "below_0": below_0(small, windows),
        "documents": documents,
        "large": of_places,
        "kept_bytes": kept_bytes,
        "own_bytes": None if after_bytes is None else after_bytes - before_bytes,
        "read_bytes": bytes_kept(lambda: read_many(of_large)),
        "open_files": sorted(name for name, value in held if isinstance(value, io.IOBase)),
        "copying_maps": sorted(name for name, value in held if isinstance(value, np.memmap) and value.mode == "c"),
    }


def streamed() -> Iterator[list[int]]:
    """Documents of one token over and over: little of each but the list itself takes memory."""
    for _ in range(N_STREAMED):
        yield [7] * STREAMED_TOKENS


def past_end(dataset: Any) -> str | None:
    """None where the index after the last one raises an IndexError, which ends a `for`."""
    try:
        found = dataset[len(dataset)]
    except IndexError:
        return None
    except Exception as error:
        return f"raises {type(error).__name__}"
    return f"returns a tensor of {found.numel()} tokens" if isinstance(found, torch.Tensor) else "returns no tensor"


def below_0(dataset: Any, windows: list) -> str | None:
    """None where index -1 raises an IndexError, or counts from the end as that of a list."""
    try:
        found = dataset[-1]
    except IndexError:
        return None
    except Exception as error:
        return f"raises {type(error).__name__}"
    if not isinstance(found, torch.Tensor):
        return "returns no tensor"
    is_last = bool(windows) and isinstance(windows[-1], torch.Tensor) and torch.equal(found, windows[-1])
    return None if is_last else f"returns a tensor of {found.numel()} tokens"


def peak_bytes(work: Callable[[], object]) -> int:
    """The most that Python and NumPy hold during the work beyond what they held before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def read_many(dataset: Any) -> None:
    """Windows and documents from the beginning, of which nobody keeps any."""
    for index in range(min(N_READ_WINDOWS, len(dataset))):
        dataset[index]
    for number in range(N_READ_DOCUMENTS):
        dataset.document(number)


def bytes_kept(work: Callable[[], object]) -> int:
    """What Python and NumPy hold after the work beyond what they held before."""
    tracemalloc.start()
    try:
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def own_bytes() -> int | None:
    """What of this process is in memory and no page of a file; None where the system does not tell."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        return next((1024 * int(line.split()[1]) for line in file if line.startswith("RssAnon:")), None)
    return None


def lay_down(path: str, case: Corpus, documents: list[torch.Tensor]) -> None:
    """The two files as they should be."""
    torch.cat(documents).numpy().astype(case.dtype).tofile(path + ".bin")
    np.cumsum([0, *map(len, documents)]).astype(np.int64).tofile(path + ".idx")


def lay_down_large(path: str, case: Corpus, tree: dict) -> None:
    """A file with holes, which hold zeros and take no room."""
    itemsize = np.dtype(case.dtype).itemsize
    with open(path + ".bin", "wb") as file:
        file.truncate(case.n_large * itemsize)
        for place, tokens in zip(tree["places"], tree["large"], strict=True):
            start = place * case.window
            file.seek(start * itemsize)
            file.write(tokens[: case.n_large - start].numpy().astype(case.dtype).tobytes())
    np.linspace(0, case.n_large, N_LARGE_DOCUMENTS + 1).astype(np.int64).tofile(path + ".idx")


def content(path: str) -> torch.Tensor | None:
    """A file's bytes; None where there is none, or only what an earlier run has left."""
    data = Path(path).read_bytes() if Path(path).is_file() else EARLIER
    return None if data == EARLIER else torch.tensor(list(data), dtype=torch.uint8)


MEMORY_MAP = Exercise(
    id="07-memory-map",
    title="A file that is larger than the memory",
    points=3,
    minutes=20,
    difficulty=2,
    answers=(Answer("write_tokens"), Answer("TokenWindows")),
    public=(
        Corpus(5, 20, 8),
        Corpus(40, 30, 16, vocab_size=128_256),
        Corpus(12, 25, 10, vocab_size=65_536),
        Corpus(1, 9, 16, vocab_size=65_537),
    ),
    inputs=corpus,
    drive=drive,
    run=Run(memory_bytes=MEMORY_BYTES, needs=("files",)),
)
