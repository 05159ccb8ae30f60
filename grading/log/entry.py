"""One entry of the log, and the line that it is written as: JSON that ends with the SHA-256 of all before it.

The digest is of the line's bytes, so that reading needs no canonical form. Files and chains are other modules'.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

FIRST = "0" * 64
"""What stands for the digest of the entry before the first."""

OWN_NAMES = ("n", "time", "kind", "previous", "digest")
_DIGEST_AT_END = re.compile(rb',"digest":"([0-9a-f]{64})"}\Z')


class Damaged(ValueError):
    """A line is no entry; says what is wrong with it."""


@dataclass(frozen=True)
class LogEntry:
    """n counts from 1; time is UTC in ISO form; previous and digest are hexadecimal SHA-256.

    LogEntry(8, "2026-03-02T11:20:09.004+00:00", "ungraded", previous="1c9a…", digest="b7d0…",
             facts={"lab": "02_float_formats", "student": "bob", "outcome": "unreadable", "reason": "…"})
    """

    n: int
    time: str
    kind: str
    previous: str
    digest: str
    facts: dict[str, Any] = field(default_factory=dict)
    is_intact: bool = True


def line_of(n: int, previous: str, kind: str, facts: dict[str, Any]) -> bytes:
    """The line of a new entry, with its newline. Raises ValueError for a fact under one of the entry's own names."""
    if taken := sorted(set(facts) & set(OWN_NAMES)):
        raise ValueError(f"a fact may not be called {taken[0]}: every entry has that of its own")
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    data = {"n": n, "time": now, "kind": kind, **facts, "previous": previous}
    # ASCII alone, so that a folder's name of broken bytes comes back as it was.
    body = json.dumps(data, separators=(",", ":")).encode()[:-1]
    return body + b',"digest":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


def entry_of(line: bytes) -> LogEntry:
    """Read a line without its newline. `is_intact` says whether the digest fits. Raises Damaged."""
    found = _DIGEST_AT_END.search(line)
    try:
        data = json.loads(line)
        n, time, kind, previous, digest = (data.pop(name) for name in OWN_NAMES)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged("it cannot be read") from error
    if not (type(n) is int and all(type(text) is str for text in (time, kind, previous, digest))):
        raise Damaged("it cannot be read")
    is_intact = found is not None and hashlib.sha256(line[: found.start()]).hexdigest() == digest
    return LogEntry(n, time, kind, previous, digest, data, is_intact)
