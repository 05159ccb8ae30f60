"""What stands on a feedback page, as data: the tasks with their points and words, then the notebook in parts.

Everything that a student wrote is escaped or text by the time it is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from markupsafe import Markup

from grading.feedback.words import Words
from labkit.check.verdict import Verdict


@dataclass(frozen=True)
class Task:
    """One thing that gives points: an exercise, a plain test, or a question that a person reads.

    anchor: the id of its part of the notebook. most: its points; of an optional exercise what it can add to the lab's.
    """

    id: str
    anchor: str
    title: str
    score: float
    most: float
    is_extra: bool
    words: Words
    by_hand: bool = False
    verdict: Verdict | None = None
    error: str | None = None
    comments: tuple[Markup, ...] = ()

    @property
    def is_worth_a_word(self) -> bool:
        """Whether there is more to say than its line in the table does, and what is said of all that is blank."""
        return bool(self.comments) or not (self.is_blank or (self.words.colour == "full" and self.score >= self.most))

    @property
    def is_blank(self) -> bool:
        return self.words.colour == "blank"


@dataclass
class CoursePart:
    """Cells of the course in a row, folded away under their headings."""

    headings: list[str]
    cells: list[Markup] = field(default_factory=list)


@dataclass
class OwnPart:
    """What the student wrote in one place, what it printed, and the box under it. anchor: "" where nothing leads here.

    heading: whether the title stands over it as a heading; a prediction or an added cell has a label.
    """

    title: str
    anchor: str = ""
    is_heading: bool = False
    cells: list[Markup] = field(default_factory=list)
    boxes: list[Markup] = field(default_factory=list)


@dataclass(frozen=True)
class Content:
    """The whole page."""

    title: str
    lab: str
    student: str
    score: float
    most: float
    late: float
    tasks: tuple[Task, ...]
    parts: tuple[CoursePart | OwnPart, ...]
    on_the_board: str = ""
    """What the student is called on the leaderboard, where an entry of theirs may stand there."""

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.is_worth_a_word)

    @property
    def blank_tasks(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.is_blank)

    @property
    def waiting(self) -> float:
        """Points that nobody has given yet."""
        return sum(task.most for task in self.tasks if task.words.colour == "waiting")

    @property
    def extra(self) -> float:
        return sum(task.score for task in self.tasks if task.is_extra)
