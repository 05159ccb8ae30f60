"""What a feedback page shows of an exercise: verdict, hint and measures beside the code, and nothing hidden."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from grading.errors import UserError
from grading.gradebook import feedback
from grading.gradebook.outputs import exercise_outputs
from grading.rebuild import TemplateCell
from grading.supervisor.result import ExerciseResult
from labkit.check.verdict import Verdict

SLOT = TemplateCell("02-sums-check", "check", "code", "", "", exercise="02-sums", points=2)
PUBLIC = Verdict("02-sums", "passed", 1.0, "all pass", budgets=(("dispatches", 49.0, 288.0, "operations"),), n_cases=3)
UNSEEN = replace(PUBLIC, budgets=(("dispatches", 7777.0, 8888.0, "operations"),))
FAILED = replace(
    UNSEEN, outcome="failed", score=0.0, headline="not every hidden one", rows=(("got", "secret"),), hint="Think <b>."
)


def shown(public: Verdict, hidden: Verdict | None) -> tuple[str, list[str]]:
    box, *sign = exercise_outputs(ExerciseResult(public, hidden), SLOT)
    assert set(box.data) == {"text/html", "text/plain"}
    return box.data["text/html"] + box.data["text/plain"], [output.output_type for output in sign]


def test_an_answer_that_passes_shows_the_public_measures() -> None:
    text, sign = shown(PUBLIC, UNSEEN)
    assert "49 of 288 operations" in text and "7,777" not in text and sign == []


def test_a_hidden_failure_shows_the_hint_and_the_public_measures() -> None:
    text, sign = shown(PUBLIC, FAILED)
    assert "not every hidden one" in text and "Think &lt;b&gt;." in text and sign == ["error"]
    assert "49 of 288 operations" in text
    assert "7,777" not in text and "8,888" not in text and "secret" not in text


def test_a_public_failure_shows_its_measures() -> None:
    public = replace(PUBLIC, outcome="failed", score=0.0, rows=(("got", "<script>"),))
    text, sign = shown(public, None)
    assert "49 of 288 operations" in text and "&lt;script&gt;" in text and sign == ["error"]


def test_a_partial_score_is_told_to_nbgrader() -> None:
    half = replace(PUBLIC, outcome="partial", score=0.5)
    text, sign = shown(half, half)
    assert "49 of 288 operations" in text and sign == ["execute_result"]


def test_a_page_that_takes_too_long_is_named_and_keeps_nobody_from_theirs(tmp_path, monkeypatch) -> None:
    made = []

    def generate(_lab: str, student: str, force: bool) -> dict:
        while student == "mallory":
            sum(range(1000))
        made.append(student)
        return {"success": True, "log": "", "error": None}

    course = SimpleNamespace(
        root=tmp_path,
        students=lambda lab: ["ada", "mallory", "zoe"],
        autograded=lambda lab, student: Path(__file__),
        feedback=lambda lab, student: tmp_path / f"{student}.html",
    )
    monkeypatch.setattr(feedback, "open_api", lambda course: SimpleNamespace(generate_feedback=generate))
    monkeypatch.setattr(feedback, "PAGE_S", 0.2)
    with pytest.raises(UserError, match="1 feedback pages could not be made") as caught:
        feedback.make_feedback(course, "00_small")
    assert "mallory (0.2 s of cpu time)" in caught.value.remedy and made == ["ada", "zoe"]


def test_a_page_is_made_again_when_its_notebook_or_the_gradebook_has_changed(tmp_path, monkeypatch) -> None:
    """Points and comments of a person change the gradebook alone."""
    page, graded, database = (tmp_path / name for name in ("page.html", "graded.ipynb", "gradebook.db"))
    made = []

    def generate(_lab: str, student: str, force: bool) -> dict:
        made.append(student)
        return {"success": True, "log": "", "error": None}

    course = SimpleNamespace(
        root=tmp_path,
        students=lambda lab: ["ada"],
        autograded=lambda lab, student: graded,
        feedback=lambda lab, student: page,
    )
    monkeypatch.setattr(feedback, "open_api", lambda course: SimpleNamespace(generate_feedback=generate))

    def n_made(**seconds: int) -> int:
        for path in (page, graded, database):
            path.unlink(missing_ok=True)
            if path.stem in seconds:
                path.touch()
                os.utime(path, (seconds[path.stem],) * 2)
        before = len(made)
        assert feedback.make_feedback(course, "00_small") == 1
        return len(made) - before

    assert n_made(graded=10, gradebook=11, page=12) == 0
    assert n_made(graded=13, gradebook=11, page=12) == 1
    assert n_made(graded=10, gradebook=13, page=12) == 1
    assert n_made(graded=10, gradebook=11) == 1
    assert n_made(graded=10, page=12) == 1  # the gradebook lies on a server
