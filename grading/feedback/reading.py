"""From a graded notebook and its result to what stands on the page.

A cell of the course is known by the template's metadata, which a submission cannot change; every other is a student's.
"""

from __future__ import annotations

import re
from dataclasses import replace

from markupsafe import Markup
from nbformat import NotebookNode

from grading.feedback.content import Content, CoursePart, OwnPart, Task
from grading.feedback.prose import Prose, code_as_html
from grading.feedback.words import BLANK_TEXT, READ, SET_BY_HAND, WAITS, Words, of_exercise, of_points, of_test
from grading.pages import Whereabouts, harmless
from grading.supervisor.result import SubmissionResult
from labkit import exercises
from labkit.check.html import as_html
from labkit.check.points import with_points

NO_RESPONSE = "No response."
"""nbgrader's own comment on a cell that was left as it was."""

MOST_PRINTED = 20_000
"""Characters of what a cell printed; what it printed beyond that is in the notebook."""

_ADDED = re.compile(r".*-added-\d+")
_CHECK = "-check"
_LEFT_BLANK = re.compile(r"\bNone\b")


def content_of(notebook: NotebookNode, names: dict, result: SubmissionResult | None) -> Content:
    """names: nbgrader's own of this page (student, assignment, score, max_score, late_penalty)."""
    tasks = _Tasks(notebook, result).all()
    parts = _Parts({task.anchor: task for task in tasks}).of(notebook)
    return Content(
        title=_title(notebook, names["notebook"]),
        lab=names["notebook"],
        student=names["student"],
        score=max(0.0, float(names["score"] or 0.0)),
        most=float(names["max_score"] or 0.0),
        late=float(names["late_penalty"] or 0.0),
        tasks=tuple(tasks),
        parts=tuple(parts),
    )


class _Tasks:
    def __init__(self, notebook: NotebookNode, result: SubmissionResult | None) -> None:
        self.notebook, self.result = notebook, result
        self.prose = Prose()

    def all(self) -> list[Task]:
        """In the notebook's order. A comment on an answer goes to what is graded next."""
        found, comments, here = [], [], Whereabouts()
        for cell in self.notebook.cells:
            meta = _meta(cell)
            if _is_text_of_course(cell):
                here.read(cell.source)
            comment = meta.get("comment")
            if comment and comment.strip() != NO_RESPONSE:
                comments.append(self.prose.of_person(comment))
            if meta.get("grade") or meta.get("task"):
                found.append(self._task(cell, meta, here.name, tuple(comments)))
                comments = []
        return found

    def _task(self, cell: NotebookNode, meta: dict, called: str, comments: tuple[Markup, ...]) -> Task:
        cell_id, score, by_hand = meta["grade_id"], float(meta.get("score") or 0.0), bool(meta.get("by_hand"))
        most = float(meta.get("points") or 0.0)
        exercise = _exercise_of(cell_id) if not meta.get("solution") else None
        is_extra = exercise is not None and not most and exercises.find(exercise).optional
        most = exercises.find(exercise).points if is_extra else most
        found = self.result.exercises.get(exercise) if self.result and exercise else None
        ran = self.result.cells.get(cell_id) if self.result and not exercise else None
        if meta.get("waiting") and (meta.get("solution") or meta.get("task")):
            words = WAITS
        elif meta.get("solution") or meta.get("task"):
            is_blank = (meta.get("comment") or "").strip() == NO_RESPONSE
            words = BLANK_TEXT if is_blank and not score and not by_hand else _by_a_person(score, most, READ)
        elif by_hand:
            words = _by_a_person(score, most, SET_BY_HAND)
        elif found is not None:
            words = of_exercise(found)
        elif ran is not None:
            words = of_test(ran, score, most)
        else:
            words = of_points(score, most)
        return Task(
            id=exercise or cell_id,
            anchor=cell_id,
            title=exercises.find(exercise).title if exercise else called or cell_id,
            score=score,
            most=most,
            is_extra=is_extra,
            words=words,
            by_hand=by_hand,
            verdict=with_points(found.shown, exercises.find(exercise).points, most) if found else None,
            error=ran.error if ran and not ran.ok else None,
            comments=comments,
        )


class _Parts:
    def __init__(self, tasks: dict[str, Task]) -> None:
        self.tasks = tasks
        self.prose = Prose()
        self.parts: list[CoursePart | OwnPart] = []
        self.heading = "text and code"

    def of(self, notebook: NotebookNode) -> list[CoursePart | OwnPart]:
        upcoming = _upcoming(notebook)
        for cell in notebook.cells:
            meta = _meta(cell)
            task = self.tasks.get(meta.get("grade_id", ""))
            if task is not None and not (meta.get("solution") or meta.get("task")):
                self._own(task).boxes.append(_box(task, cell))
            elif meta.get("solution") or meta.get("task"):
                self._own(task or self.tasks.get(upcoming.get(cell.id, ""))).cells.append(self._shown(cell))
            elif _ADDED.fullmatch(cell.id or ""):
                self.parts.append(OwnPart("A cell that you added", cells=[self._shown(cell)]))
            elif _is_prediction(cell, meta):
                self.parts.append(OwnPart("Your prediction", cells=[self._shown(cell)]))
            else:
                self._of_course(cell)
        return self.parts

    def _own(self, task: Task | None) -> OwnPart:
        """The part of this task, if it is the last one; else a new one."""
        last = self.parts[-1] if self.parts else None
        if isinstance(last, OwnPart) and task is not None and last.anchor == task.anchor:
            return last
        if task is None:
            part = OwnPart("Your answer", is_heading=True)
        else:
            # The answer to one task may stand in several places, and an address leads to the first.
            is_first = not any(isinstance(part, OwnPart) and part.anchor == task.anchor for part in self.parts)
            part = OwnPart(f"{task.id}: {task.title}", task.anchor if is_first else "", is_heading=True)
        self.prose.under(3)
        self.parts.append(part)
        return part

    def _of_course(self, cell: NotebookNode) -> None:
        last = self.parts[-1] if self.parts else None
        heading = _first_heading(cell)
        if not isinstance(last, CoursePart):
            last = CoursePart([] if heading else [f"{self.heading} (continued)"])
            self.parts.append(last)
        if heading:
            last.headings.append(heading)
            self.heading = heading
        if cell.cell_type == "markdown":
            last.cells.append(self.prose.of_course(cell.source, cell.get("attachments")))
        elif cell.source.strip():
            last.cells.append(self._shown(cell))

    def _shown(self, cell: NotebookNode) -> Markup:
        if cell.cell_type == "markdown":
            return Markup('<div class="text">{}</div>').format(self.prose.of_person(cell.source))
        printed = "".join(
            output.get("text", "") for output in cell.get("outputs", ()) if output.output_type == "stream"
        )
        return code_as_html(cell.source) + _printed(printed)


def _box(task: Task, cell: NotebookNode) -> Markup:
    """The verdict anew, as it was in the notebook; without a stored result the text that stands there."""
    if task.verdict is not None:
        return Markup(harmless(as_html(task.verdict)))
    if task.error:
        return _printed(task.error)
    texts = [output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", ()) if "data" in output]
    return _printed("\n".join(texts))


def _printed(text: str) -> Markup:
    if not text:
        return Markup("")
    rest = len(text) - MOST_PRINTED
    more = f"\n[{rest:,} more characters were printed]" if rest > 0 else ""
    return Markup('<pre class="printed">{}</pre>').format(harmless(text[:MOST_PRINTED]).rstrip("\n") + more)


def _by_a_person(score: float, most: float, sentence: str) -> Words:
    return replace(of_points(score, most), sentence=sentence)


def _upcoming(notebook: NotebookNode) -> dict[str, str]:
    """For each answer cell the cell that grades it: the next one that gives points."""
    found, graded = {}, ""
    for cell in reversed(notebook.cells):
        meta = _meta(cell)
        if meta.get("grade"):
            graded = meta["grade_id"]
        if meta.get("solution") and not meta.get("grade") and graded:
            found[cell.id] = graded
    return found


def _exercise_of(cell_id: str) -> str | None:
    exercise = cell_id.removesuffix(_CHECK)
    return exercise if exercise != cell_id and exercise in exercises.ids_of_lab(exercise[:2]) else None


def _is_prediction(cell: NotebookNode, meta: dict) -> bool:
    """One that the student has made: as released it says None."""
    is_one = cell.cell_type == "code" and bool(meta.get("grade_id")) and not meta.get("locked")
    return is_one and not _LEFT_BLANK.search(cell.source)


def _is_text_of_course(cell: NotebookNode) -> bool:
    return cell.cell_type == "markdown" and not _ADDED.fullmatch(cell.id or "") and not _meta(cell).get("solution")


def _first_heading(cell: NotebookNode) -> str:
    if not _is_text_of_course(cell):
        return ""
    return next((line.lstrip("#").strip() for line in cell.source.splitlines() if re.match(r"#{1,6} ", line)), "")


def _title(notebook: NotebookNode, otherwise: str) -> str:
    return next((heading for cell in notebook.cells if (heading := _first_heading(cell))), otherwise)


def _meta(cell: NotebookNode) -> dict:
    return cell.metadata.get("nbgrader", {})
