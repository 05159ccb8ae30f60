"""The log of a course: JSON lines in `.grading/log.jsonl`, each with the SHA-256 of the one before.

Entries are only ever added, by any number of processes, and each is on the disk when `append` returns. What a crash
left of an unfinished line is kept in a file of its own and noted. Nothing here knows what the entries mean.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import hmac
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grading.course import Course
from grading.log.chain import problems_of
from grading.log.entry import FIRST, Damaged, LogEntry, entry_of, line_of
from grading.log.head import LogHead, parse_short, read_head, write_head

TAIL_BYTES = 16 * 2**10


@dataclass(frozen=True)
class Log:
    """The log of one course. It holds nothing open, so that it may be used anywhere and after a fork."""

    course: Course

    @property
    def path(self) -> Path:
        return self.course.root / ".grading" / "log.jsonl"

    @property
    def head_path(self) -> Path:
        return self.path.with_suffix(".head")

    def append(self, kind: str, /, **facts: Any) -> None:
        """Add an entry; facts are plain data. Raises OSError, and then nothing was added, or ValueError."""
        key = self.course.key()
        self.path.parent.mkdir(exist_ok=True)
        with _open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, fcntl.LOCK_EX) as log:
            for lost in (self._put_aside(log), self._missing(log, key)):
                if lost:
                    _add(log, "recovered", lost)
            head = _add(log, kind, facts)
            # The entry is what counts; a head that stays behind only guards less of the log.
            with contextlib.suppress(OSError):
                write_head(self.head_path, head, key)

    def entries(self) -> Iterator[LogEntry]:
        """The entries that can be read, in the order in which they stand."""
        for line in self.lines():
            with contextlib.suppress(Damaged):
                yield entry_of(line)

    def lines(self) -> Iterator[bytes]:
        """The lines as they stand now, without their newlines; one that has none is not finished and left out."""
        try:
            with _open(self.path, os.O_RDONLY, fcntl.LOCK_SH) as log:
                end = os.fstat(log).st_size
        except FileNotFoundError:
            return
        with self.path.open("rb") as file:
            while file.tell() < end and (line := file.readline()).endswith(b"\n"):
                yield line[:-1]

    def verify(self) -> list[str]:
        """What is wrong with the chain, in sentences, the first broken entry first; nothing where it holds."""
        return problems_of(self.lines(), read_head(self.head_path, self.course.key()), self._unfinished())

    def head(self) -> LogHead:
        """Where the log ends now."""
        head = LogHead(0, FIRST)
        for entry in self.entries():
            head = LogHead(entry.n, entry.digest)
        return head

    def problems_since(self, head: str) -> list[str]:
        """What is wrong with the log as seen from a head that was written down. Raises UserError where it is none."""
        n, digits = parse_short(head)
        key = self.course.key()
        found = (
            [LogHead(entry.n, entry.digest) for entry in self.entries() if entry.n == n] if n else [LogHead(0, FIRST)]
        )
        short = f"{n}-{digits}"
        if not found:
            return [f"the log has no entry {n}, and it had one when the head {short} was written down"]
        if any(hmac.compare_digest(each.short(key), short) for each in found):
            return []
        return [f"entry {n} is not the one that the head {short} was taken from: the log was rewritten, or the key"]

    def _unfinished(self) -> int:
        """How many bytes stand after the last finished line."""
        try:
            with _open(self.path, os.O_RDONLY, fcntl.LOCK_SH) as log:
                return os.fstat(log).st_size - _finished(log)
        except FileNotFoundError:
            return 0

    def _put_aside(self, log: int) -> dict[str, Any] | None:
        """Move what is left of an unfinished line to a file of its own, and say which."""
        start, end = _finished(log), os.fstat(log).st_size
        # A power cut can also leave the end of a line without its beginning.
        while start and not _is_entry(line := _last_line(log, start)):
            start -= len(line) + 1
        if start == end:
            return None
        rest = os.pread(log, end - start, start)
        digest = hashlib.sha256(rest).hexdigest()
        kept = self.path.with_name(f"log.unfinished-{digest[:16]}")
        kept.write_bytes(rest)
        kept.chmod(0o600)
        os.ftruncate(log, start)
        what = "an unfinished line was put aside"
        return {"what": what, "kept": kept.name, "sha256": digest, "size_bytes": len(rest)}

    def _missing(self, log: int, key: bytes) -> dict[str, Any] | None:
        """Whether the log ends before the head that was kept: then it was cut, and an entry must say so for good."""
        kept, ends = read_head(self.head_path, key), _head(log)
        if kept is None or kept.n < ends.n or kept == ends:
            return None
        return {"what": "entries are missing", "last_n": kept.n, "last_digest": kept.digest}


@contextlib.contextmanager
def _open(path: Path, flags: int, lock: int) -> Iterator[int]:
    """A descriptor of the file, locked against other processes and threads."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, lock)
        yield descriptor
    finally:
        os.close(descriptor)


def _add(log: int, kind: str, facts: dict[str, Any]) -> LogHead:
    """Write one entry after the last, whole or not at all, and see it onto the disk."""
    end, head = os.fstat(log).st_size, _head(log)
    line = line_of(head.n + 1, head.digest, kind, facts)
    try:
        if os.write(log, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(log)
    except BaseException:
        os.ftruncate(log, end)
        raise
    return LogHead(head.n + 1, entry_of(line[:-1]).digest)


def _head(log: int) -> LogHead:
    end = os.fstat(log).st_size
    if end == 0:
        return LogHead(0, FIRST)
    last = entry_of(_last_line(log, end))
    return LogHead(last.n, last.digest)


def _finished(log: int) -> int:
    """Where the last finished line ends."""
    return _start_of_line(log, os.fstat(log).st_size)


def _last_line(log: int, end: int) -> bytes:
    """The line whose newline is the byte before `end`."""
    start = _start_of_line(log, end - 1)
    return os.pread(log, end - 1 - start, start)


def _is_entry(line: bytes) -> bool:
    try:
        entry_of(line)
    except Damaged:
        return False
    return True


def _start_of_line(log: int, end: int) -> int:
    """The position after the last newline before `end`; only the file's tail is read."""
    while end > 0:
        start = max(end - TAIL_BYTES, 0)
        found = os.pread(log, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
