"""Where the log ends, kept beside it under the course's key, and short enough to be written on paper.

The file `log.head` tells a log that lost its end from one that was never longer. Somebody who has the course's key
can forge that file; a head written down elsewhere cannot be forged.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
from dataclasses import dataclass
from pathlib import Path

from grading.errors import UserError

SHORT_DIGITS = 24
_HEAD = re.compile(r"([0-9]{1,12})-([0-9a-f]{24})")


@dataclass(frozen=True)
class LogHead:
    """The number and the digest of the last entry; 0 where there is none."""

    n: int
    digest: str

    def signed(self, key: bytes) -> str:
        """64 hexadecimal digits that only somebody with the course's key can compute."""
        return hmac.new(key, f"head of the log {self.n} {self.digest}".encode(), hashlib.sha256).hexdigest()

    def short(self, key: bytes) -> str:
        """What `audit --head` prints: the entry's number and 24 digits."""
        return f"{self.n}-{self.signed(key)[:SHORT_DIGITS]}"


def parse_short(text: str) -> tuple[int, str]:
    """The number and the digits of a head that was written down. Raises UserError."""
    found = _HEAD.fullmatch(text.strip().lower())
    if not found:
        raise UserError(
            f'"{text}" is not the head of a log', "give it as `audit --head` printed it: 12-0123456789ab..."
        )
    return int(found[1]), found[2]


def read_head(path: Path, key: bytes) -> LogHead | None:
    """The head that was kept; None where there is none, or where it was not written with this key."""
    with contextlib.suppress(OSError, ValueError):
        n, digest, signed = path.read_text().split()
        head = LogHead(int(n), digest)
        if hmac.compare_digest(head.signed(key), signed):
            return head
    return None


def write_head(path: Path, head: LogHead, key: bytes) -> None:
    """Keep the head; always of the same length, so that one small write replaces it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, f"{head.n:012d} {head.digest} {head.signed(key)}\n".encode(), 0)
    finally:
        os.close(descriptor)
