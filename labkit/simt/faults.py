"""What a kernel did wrong, by source line: one fault a line and kind, with the first thread that did it and how often.

Kinds: "out of bounds", "misaligned", "read only", "uninitialized shared memory", "race", "race between blocks",
"barrier", "warp synchronization", "pending copy", "assertion", "trap", "call stack", "never ends", "too much work".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Fault:
    """One mistake at one line.

    text: what happened, in the kernel's terms; thread and block: of the first lane that did it; count: lanes in all.
    Example: Fault("out of bounds", 4, "reads x[1000], but x has 1,000 elements", (8, 0, 0), (3, 0, 0), 24).
    """

    kind: str
    line: int
    text: str
    thread: Dim3 | None = None
    block: Dim3 | None = None
    count: int = 1

    def __str__(self) -> str:
        who = (
            ""
            if self.thread is None
            else f" (thread {index_in_words(self.thread)} of block {index_in_words(self.block)}"
        )
        more = f", {self.count - 1:,} more" if self.count > 1 else ""
        return f"line {self.line}: {self.kind}: {self.text}{who}{more}{')' if who else ''}"


def index_in_words(one: Dim3 | None) -> str:
    """An index without the zeros at its end: "5" of (5, 0, 0), "(5, 2)" of (5, 2, 0)."""
    x, y, z = one or (0, 0, 0)
    if z:
        return f"({x}, {y}, {z})"
    return f"({x}, {y})" if y else str(x)


class LaunchFault(RuntimeError):
    """The kernel did what CUDA does not define. faults: all of them; profile: what was counted all the same.

    students_line: the line of the first, as in "line 4: y[i] = x[i];".
    """

    def __init__(self, name: str, faults: Iterable[Fault], source: str, profile: object = None) -> None:
        self.faults = tuple(faults)
        self.profile = profile
        rows = source.splitlines()
        messages, lines = [], []
        for fault in self.faults:
            quoted = rows[fault.line - 1].strip() if 1 <= fault.line <= len(rows) else ""
            messages.append(f"{name}, {fault}\n    {quoted}" if quoted else f"{name}, {fault}")
            lines.append(f"line {fault.line}: {quoted}" if quoted else None)
        self.students_line = lines[0] if lines else None
        super().__init__("\n".join(messages))


class Stop(Exception):
    """The launch ends here: its fault is in the log."""


CAUSES = ("barrier", "warp synchronization")
"""Kinds that leave others behind them: threads that do not wait read what is not there yet."""


@dataclass
class FaultLog:
    """The faults of one launch."""

    found: dict[tuple[str, int], Fault] = field(default_factory=dict)

    def all(self) -> tuple[Fault, ...]:
        """In the order of their first appearance, after those that may be the cause of the others."""
        return tuple(sorted(self.found.values(), key=lambda fault: fault.kind not in CAUSES))

    def add(self, fault: Fault) -> None:
        """Add one; a second of the same kind and line raises its count."""
        key = (fault.kind, fault.line)
        known = self.found.get(key)
        self.found[key] = replace(known, count=known.count + fault.count) if known else fault
