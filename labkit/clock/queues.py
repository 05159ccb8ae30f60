"""Work on queues, known beforehand: computation and communication side by side, each in the order that it was put in.

A queue runs one task at a time. A task begins when its queue is free and all that it needs has ended. No thread runs
and nothing is computed: this is arithmetic on seconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from labkit.clock.turns import Span


@dataclass(frozen=True)
class Task:
    """So many seconds on a queue, after what it needs, by name.

    Task(("forward", 1), "GPU", 4e-3, needs=(("gather", 1),))
    """

    name: Hashable
    queue: str
    seconds: float
    needs: tuple[Hashable, ...] = ()


def play(tasks: Iterable[Task]) -> dict[Hashable, Span]:
    """When each task runs, by its name; the tasks of a queue run in the order in which they are given.

    A task can only need what was given before it. Raises ValueError for a name that comes twice, or that is not there.
    """
    spans: dict[Hashable, Span] = {}
    free_s: dict[str, float] = {}
    for task in tasks:
        if task.name in spans:
            raise ValueError(f"there are two tasks {task.name}")
        if missing := [name for name in task.needs if name not in spans]:
            raise ValueError(f"{task.name} needs {missing[0]}, which was not given before it")
        begins_s = max([free_s.get(task.queue, 0.0), *(spans[name].end_s for name in task.needs)])
        free_s[task.queue] = begins_s + task.seconds
        spans[task.name] = Span(task.queue, str(task.name), begins_s, free_s[task.queue])
    return spans


def makespan(spans: dict[Hashable, Span]) -> float:
    """When the last of them has ended."""
    return max((span.end_s for span in spans.values()), default=0.0)
