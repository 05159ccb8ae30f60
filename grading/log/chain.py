"""Check a chain of log lines: is every entry unchanged, does each follow the one before, is the end there?

It says where a log was changed. Who did it, and what stood there, it cannot say.
"""

from __future__ import annotations

from collections.abc import Iterable

from grading.log.entry import FIRST, Damaged, LogEntry, entry_of
from grading.log.head import LogHead


def problems_of(lines: Iterable[bytes], kept: LogHead | None, unfinished_bytes: int = 0) -> list[str]:
    """Sentences about what is wrong. kept: where the log ended when it was last written, if that is known."""
    problems: list[str] = []
    last, read, n_lines = LogHead(0, FIRST), {0: FIRST}, 0
    out_of_chain = False
    for n_lines, line in enumerate(lines, start=1):
        try:
            entry = entry_of(line)
        except Damaged as error:
            problems.append(f"line {n_lines} was damaged: {error}")
            out_of_chain = True
            continue
        if not entry.is_intact:
            problems.append(f"line {n_lines}: entry {entry.n} was changed after it was written")
        # After a line that cannot be read nothing can be said of what followed it.
        if not out_of_chain and entry.previous != last.digest:
            problems.append(f"line {n_lines}: {_break(entry, last)}")
        if entry.kind == "recovered" and "last_n" in entry.facts:
            lost = f"entries {entry.n} to {entry.facts['last_n']}" if entry.facts["last_n"] >= entry.n else "entries"
            problems.append(f"line {n_lines}: before entry {entry.n} was added, {lost} had gone from the log")
        out_of_chain = False
        last = LogHead(entry.n, entry.digest)
        read[entry.n] = entry.digest
    if unfinished_bytes:
        problems.append(f"line {n_lines + 1} is not finished: the next run puts its {unfinished_bytes:,} bytes aside")
    if kept is not None:
        problems += _against_head(read, last, kept)
    elif n_lines:
        problems.append("the file log.head is missing, or was not written with this course's key")
    return problems


def _break(entry: LogEntry, last: LogHead) -> str:
    if entry.n <= last.n:
        return f"entry {entry.n} stands after entry {last.n}: entries were reordered or repeated"
    if entry.n > last.n + 1:
        first, end = last.n + 1, entry.n - 1
        return f"entry {first} was removed" if first == end else f"entries {first} to {end} were removed"
    return f"entry {entry.n} does not follow the entry {last.n} that stands before it: one of them was replaced"


def _against_head(read: dict[int, str], last: LogHead, kept: LogHead) -> list[str]:
    if last.n < kept.n:
        return [f"the log was cut: it ends with entry {last.n}, and entry {kept.n} had been written"]
    if read.get(kept.n) != kept.digest:
        return [f"entry {kept.n} is not the one that log.head names: the log was rewritten from there or before"]
    return []
