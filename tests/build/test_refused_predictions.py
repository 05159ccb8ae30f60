"""Predictions that cannot work are refused: taken where an update loses them, given away, or never settled."""

import pytest

from grading.build import build
from tests.build import lesson
from tests.build.lesson import EXERCISES, meta
from tests.build.refused import assert_refused

TAKE = 'guesses.take("size", None, unit="bytes")'
END = 'guesses.settle("size", 3)\nguesses.score()'


def asked(body: str = TAKE, grade_id: str = "20-predict-size", **flags) -> str:
    """The small lab's setup cell with the object, and the cell that takes a prediction after it."""
    setup = lesson.cell("from labkit import Predictions, check\n\nguesses = Predictions('07')", **meta("20-setup"))
    return setup.replace('"locked": false', '"locked": true') + "\n" + lesson.cell(body, **meta(grade_id, **flags))


def test_a_prediction_that_is_taken_settled_and_shown_is_built(tmp_path) -> None:
    path = lesson.write(tmp_path, lesson.source(setup=asked(), figure=lesson.cell(END)))
    cell = next(cell for cell in build(path, EXERCISES).student.cells if cell.id == "20-predict-size")
    assert cell.source == TAKE, "students get it as it stands"
    assert cell.metadata.get("editable", True) and cell.metadata.nbgrader.locked is False


def test_predictions_may_be_settled_in_a_loop(tmp_path) -> None:
    takes = 'guesses.take("naive sum", None)\nguesses.take("sorted sum", None)'
    end = 'for name in ("naive", "sorted"):\n    guesses.settle(f"{name} sum", 3)\nguesses.score()'
    build(lesson.write(tmp_path, lesson.source(setup=asked(takes), figure=lesson.cell(end))), EXERCISES)


CASES = {
    "given away": (
        {"setup": asked('guesses.take("size", 12)'), "figure": lesson.cell(END)},
        'take("size", 12)',
        'the prediction "size" must be None: it is the student\'s',
    ),
    "never settled": (
        {"setup": asked(), "figure": lesson.cell("guesses.score()")},
        'take("size"',
        'the prediction "size" is never settled',
    ),
    "settled without having been asked": (
        {"figure": lesson.cell('guesses.settle("size", 3)')},
        'settle("size"',
        'nothing takes the prediction "size"',
    ),
    "marked without having been asked": (
        {"figure": lesson.cell('guesses.mark(figure, "size")')},
        'mark(figure, "size"',
        'nothing takes the prediction "size"',
    ),
    "settled in the same cell": (
        {"setup": asked(f"{TAKE}\n{END}")},
        'settle("size"',
        '"size" is settled or marked before it is predicted',
    ),
    "a name that nobody can look up": (
        {"setup": asked("for name in 'ab':\n    guesses.take(name, None)"), "figure": lesson.cell("guesses.score()")},
        "guesses.take(name",
        "a prediction is taken under a name in quotes",
    ),
    "settled under a pattern that fits none": (
        {"figure": lesson.cell('guesses.settle(f"{name} sum", 3)')},
        "settle(f",
        'nothing takes the prediction f"{name} sum"',
    ),
    "asked twice": (
        {"setup": asked(f"{TAKE}\n{TAKE}"), "figure": lesson.cell(END)},
        'take("size" (2)',
        'the prediction "size" is asked for a second time',
    ),
    "never shown together": (
        {"setup": asked(), "figure": lesson.cell('guesses.settle("size", 3)')},
        "20-predict-size",
        "the predictions are never shown together: end the lab with guesses.score()",
    ),
    "a locked cell": (
        {"setup": asked(locked=True), "figure": lesson.cell(END)},
        "20-predict-size",
        "a cell that takes a prediction must say locked: false",
    ),
    "an id that does not say what it is": (
        {"setup": asked(grade_id="20-size"), "figure": lesson.cell(END)},
        "20-size",
        "a cell that takes a prediction needs an id that begins with 20-predict-",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(case, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    changes, where, reason = CASES[case]
    assert_refused(tmp_path, changes, where, reason)
