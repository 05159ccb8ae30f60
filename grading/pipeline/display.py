"""The live display of a run: how many are graded, how fast, how long it will take, and what came out.

Silent where there is no terminal, but for what must be printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from grading.pipeline.tally import Tally
from grading.terminal import say

SHOWN = ("passed", "failed", "unanswered", "limit", "suspected")


class _Pace(ProgressColumn):
    """Submissions graded a minute over the whole run, and how long the rest takes at that: they come in batches."""

    def render(self, task: Task) -> Text:
        if not (task.completed and task.elapsed):
            return Text("")
        left_s = round((task.total - task.completed) * task.elapsed / task.completed)
        return Text(f"{60 * task.completed / task.elapsed:.0f}/min, {timedelta(seconds=left_s)} left")


class Display:
    """The display of one lab's run."""

    def __init__(self, lab: str, n_submissions: int) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Pace())
        outcomes = TextColumn("{task.fields[outcomes]}")
        self._bar = Progress(*columns, outcomes, console=console, disable=not console.is_terminal)
        self._n_left = n_submissions
        self._task = self._bar.add_task(lab, total=n_submissions, outcomes="")
        self._bar.start()

    def graded(self, tally: Tally) -> None:
        """One more has a grade, or is known to get none."""
        shown = [f"{tally.outcomes[name]} {name}" for name in SHOWN if tally.outcomes[name]]
        shown += [f"{tally.n_ungraded} without a grade"] * bool(tally.n_ungraded)
        self._bar.update(self._task, advance=1, outcomes=", ".join(shown))

    def unchanged(self) -> None:
        """One less to grade: it would spoil the rate to count it as done."""
        self._n_left -= 1
        self._bar.update(self._task, total=self._n_left)

    def say(self, text: str) -> None:
        """A line that is printed, to a terminal or not."""
        say(text)

    def close(self) -> None:
        """Give the terminal back."""
        self._bar.stop()


@contextmanager
def open_display(lab: str, n_submissions: int) -> Iterator[Display]:
    """A display that leaves the terminal as it was, whatever happens."""
    display = Display(lab, n_submissions)
    try:
        yield display
    finally:
        display.close()
