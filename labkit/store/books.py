"""The books of a store: its files, every call on them, and the call at which a job is killed.

Kept by the simulator in a notebook and by the supervisor in grading, so that both count alike. Whose calls they are is
not checked here, nor how they got here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_BYTES = 256 * 2**20
"""What the files of a store may hold together."""
MAX_FILES = 4096
ANY = "any"
OPS = ("write", "rename", "read", "list")


class StoreFull(RuntimeError):
    """More was written than a store holds."""


class JobKilled(BaseException):
    """The job ends here, in the middle of a call; `except Exception` does not swallow it."""


@dataclass(frozen=True)
class Kill:
    """Where a job is killed: at its n-th call, counted from 1, of one kind or of any.

        Kill(3, "write")

    What was to be written is then written by half; what was to be renamed, read or listed is not.
    """

    at: int
    of: str = ANY

    def __post_init__(self) -> None:
        if self.at < 1 or self.of not in (ANY, *OPS):
            raise ValueError(f"{self} is no place to kill a job at: at is 1 or more, of one of {(ANY, *OPS)}")

    def to_tree(self) -> dict[str, Any]:
        """As in `{"at": 3, "of": "write"}`, for an exercise's inputs."""
        return {"at": self.at, "of": self.of}


@dataclass(frozen=True)
class StoreCall:
    """One line of the books: `StoreCall(0, "read", "shard-3.tar", 512)`.

    job: the number of the job that made it. name: of the file, or the prefix that was listed. n_bytes: what was
    written, or what a read yielded, from `start` on. to: the new name of what was renamed.
    """

    job: int
    op: str
    name: str
    n_bytes: int = 0
    start: int = 0
    to: str = ""


@dataclass(frozen=True)
class Record:
    """The books once all jobs have ended: `Record((StoreCall(0, "write", "a", 1),), {"a": b"x"}, (False,))`.

    files: what is left in the store. killed: of each job, whether it was killed.
    """

    calls: tuple[StoreCall, ...]
    files: Mapping[str, bytes]
    killed: tuple[bool, ...]

    def of(self, job: int) -> tuple[StoreCall, ...]:
        """The calls of one job."""
        return tuple(call for call in self.calls if call.job == job)


class Books:
    """A store's books over several jobs, of which one runs at a time. kills: where each but the last is killed."""

    def __init__(self, files: Mapping[str, bytes], kills: Sequence[Kill] = ()) -> None:
        self._files = dict(files)
        self._n_bytes = sum(map(len, self._files.values()))
        self._kills = tuple(kills)
        self._calls: list[StoreCall] = []
        self._counts: Counter[str] = Counter()
        self._killed: list[bool] = []

    @property
    def n_jobs(self) -> int:
        """How many jobs run on the store, one after the other."""
        return len(self._kills) + 1

    @property
    def is_killed(self) -> bool:
        """Whether the job that runs has been killed."""
        return self._killed[-1]

    def begin_job(self) -> int:
        """The next job begins: its number."""
        self._killed.append(False)
        self._counts.clear()
        return len(self._killed) - 1

    def write(self, name: str, data: bytes) -> None:
        """Make a file of these bytes, in place of one of that name. Raises StoreFull, JobKilled."""
        is_killed = self._is_killed_at("write")
        if is_killed:
            data = data[: len(data) // 2]
        n_bytes = self._n_bytes + len(data) - len(self._files.get(name, b""))
        if n_bytes > MAX_BYTES or (name not in self._files and len(self._files) >= MAX_FILES):
            raise StoreFull(f"the store holds {MAX_BYTES // 2**20} MiB in {MAX_FILES:,} files, and no more")
        self._files[name], self._n_bytes = data, n_bytes
        self._enter("write", name, is_killed, n_bytes=len(data))

    def rename(self, name: str, to: str) -> None:
        """Give a file another name at one stroke, in place of one of that name. Raises FileNotFoundError, JobKilled."""
        is_killed = self._is_killed_at("rename")
        if not is_killed:
            data = self._file(name)
            del self._files[name]
            self._n_bytes -= len(self._files.get(to, b""))
            self._files[to] = data
        self._enter("rename", name, is_killed, to=to)

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """`size` bytes of a file from `start` on, or as many as there are. Raises FileNotFoundError, JobKilled."""
        is_killed = self._is_killed_at("read")
        data = b"" if is_killed else self._file(name)
        data = data[start:] if size is None else data[start : start + size]
        self._enter("read", name, is_killed, n_bytes=len(data), start=start)
        return data

    def list(self, prefix: str = "") -> list[str]:
        """The names that begin like this, sorted. Raises JobKilled."""
        is_killed = self._is_killed_at("list")
        self._enter("list", prefix, is_killed)
        return sorted(name for name in self._files if name.startswith(prefix))

    def record(self) -> Record:
        """All that was entered so far, and the files as they are."""
        return Record(tuple(self._calls), dict(self._files), tuple(self._killed))

    def figures(self) -> dict[str, float]:
        """The measures of `labkit.measures` that come from a store."""
        counts = Counter(call.op for call in self._calls)
        sizes: Counter[str] = Counter()
        for call in self._calls:
            sizes[call.op] += call.n_bytes
        # Every read and every write opens a file once.
        opens = counts["read"] + counts["write"]
        return {"opens": opens, "read_bytes": sizes["read"], "written_bytes": sizes["write"]}

    def _file(self, name: str) -> bytes:
        if name not in self._files:
            raise FileNotFoundError(f"there is no file {name!r} in the store")
        return self._files[name]

    def _is_killed_at(self, op: str) -> bool:
        if self._killed[-1]:
            # In a notebook its code goes on for as long as it swallows what should have ended it.
            raise JobKilled
        self._counts.update((op, ANY))
        at = len(self._killed) - 1
        kill = self._kills[at] if at < len(self._kills) else None
        return kill is not None and kill.of in (op, ANY) and self._counts[kill.of] == kill.at

    def _enter(self, op: str, name: str, is_killed: bool, n_bytes: int = 0, start: int = 0, to: str = "") -> None:
        self._calls.append(StoreCall(len(self._killed) - 1, op, name, n_bytes, start, to))
        if is_killed:
            self._killed[-1] = True
            raise JobKilled
