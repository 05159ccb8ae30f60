"""What a rank waits for, and the sentence for ranks that wait for one another.

It says when a wait is over, never how to wait: that is up to whoever runs the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_N_NAMED = 3
"""So many ranks of a deadlock are told one by one."""


@dataclass(frozen=True)
class Need:
    """What a waiting rank waits for: when it is there, which rank could bring it, and how to say it."""

    ready: Callable[[], bool]
    on: int
    text: str


def deadlock(waiting: Sequence[tuple[int, Need]], finished: Sequence[bool]) -> str:
    """The sentence for ranks of which none can go on: (rank, what it waits for), and which ranks have finished."""
    parts = [
        f"rank {rank} waits {need.text}" + (", which has finished" if finished[need.on] else "")
        for rank, need in waiting[:_N_NAMED]
    ]
    more = len(waiting) - _N_NAMED
    if more > 0:
        parts.append(f"and {more} more wait" + "s" * (more == 1))
    return "deadlock: " + ", ".join(parts)
