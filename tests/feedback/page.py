"""A graded notebook as the exporter gets it, with a student's own texts in every place, and its page."""

from __future__ import annotations

from html.parser import HTMLParser

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from grading.feedback.exporter import as_page
from grading.feedback.reading import content_of
from grading.supervisor.result import CellResult, ExerciseResult, SubmissionResult
from labkit.check.verdict import Verdict

EXERCISE = "00-warm-up"
NAMES = {"student": "ada", "assignment": "00_small", "notebook": "00_small", "score": 1.0, "max_score": 5.0}
PASSED = Verdict(EXERCISE, "passed", 1.0, f"{EXERCISE}: all 8 cases pass, 1 point.", n_passed=8, n_cases=8)
FAILED = Verdict(
    EXERCISE,
    "failed",
    0.0,
    f"{EXERCISE}: 4 of 8 cases pass; this one does not.",
    rows=(("case", "rms(x, dim=1)"), ("got", "tensor([1.,\n        2.])")),
    hint="`dim` is not used.",
    n_passed=4,
    n_cases=8,
)
HIDDEN = Verdict(
    EXERCISE,
    "failed",
    0.0,
    f"{EXERCISE}: the public cases pass, but not every hidden one does.",
    rows=(("case", "SECRET case"), ("error", "SECRET error")),
    hint="Think of other shapes.",
    budgets=(("dispatches", 7777.0, 8888.0, "operations"),),
    n_passed=3,
    n_cases=9,
)


def result_of(public: Verdict = PASSED, hidden: Verdict | None = None, error: str | None = None) -> SubmissionResult:
    cells = {"00-plain": CellResult(error is None, error, "")}
    return SubmissionResult("k", "00_small", "ada", {EXERCISE: ExerciseResult(public, hidden)}, cells, ())


def graded_notebook(
    answer: str = "def rms(x, dim): ...",
    essay: str = "An essay.",
    printed: str = "",
    added: str = "",
    comment: str | None = None,
    scores: tuple[float, float, float] = (1.0, 2.0, 0.0),
    **flags: bool,
) -> NotebookNode:
    """An exercise, a plain test and a question; comment: a person's, on the question. flags: of the question."""
    outputs = [new_output("stream", name="stdout", text=printed)] if printed else []
    cells = [
        new_markdown_cell("# Lab 00: A small lab\n\nIt needs $\\frac{1}{2}$ of your time.", id="00-c001"),
        new_code_cell("import torch", id="00-setup", metadata=_meta("00-setup", locked=True)),
        new_markdown_cell(
            "## The warm-up\n\n<details><summary>Hint 1: a nudge</summary>\n\nAdd.\n\n</details>", id="2"
        ),
        new_code_cell(answer, id="00-warm-up", outputs=outputs, metadata=_meta("00-warm-up", solution=True)),
        new_code_cell("check()", id="00-k", metadata=_meta("00-warm-up-check", grade=True, points=1, score=scores[0])),
        new_markdown_cell("### A plain test", id="00-c004"),
        new_code_cell("assert 1", id="00-plain", metadata=_meta("00-plain", grade=True, points=2, score=scores[1])),
        new_markdown_cell("## Open question", id="00-c005"),
        new_markdown_cell(
            essay,
            id="00-open",
            metadata=_meta("00-open", grade=True, solution=True, points=2, score=scores[2], comment=comment, **flags),
        ),
    ]
    if added:
        cells += [
            new_code_cell(added, id="00-open-added-1", metadata={}),
            new_markdown_cell(added, id="00-open-added-2", metadata={}),
        ]
    return new_notebook(cells=cells)


def _meta(grade_id: str, **more: object) -> dict:
    flags = {"grade": False, "solution": False, "locked": False, "task": False}
    return {"nbgrader": {"grade_id": grade_id, **flags, **more}}


def page_of(notebook: NotebookNode, result: SubmissionResult | None, late: float = 0.0, **names: object) -> str:
    return as_page(content_of(notebook, {**NAMES, "late_penalty": late, **names}, result))


class Read(HTMLParser):
    """A page's tags with their attributes, its text, and which tags were left open."""

    VOID = {"meta", "br", "img", "input", "hr", "link"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    @property
    def headings(self) -> list[int]:
        return [int(tag[1]) for tag, _ in self.tags if tag in ("h1", "h2", "h3", "h4", "h5", "h6")]
