"""A schedule in lines of text: what ran when, where it is stuck, and the same in a verdict and on a feedback page."""

from __future__ import annotations

from html import unescape

import pytest

from grading.demo.examples import example
from labkit.check.html import as_html
from labkit.check.text import MAX_LINES, as_text
from labkit.check.verdict import Verdict
from labkit.pipeline import Action, Costs, ScheduleError, in_a_strip, run_schedule
from tests.exercises.harness import CaseSet
from tests.feedback.page import EXERCISE, graded_notebook, page_of, result_of

GPIPE_OF_TWO = """\
stage 0  F0 F1 ·3 B0 B1
stage 1  ·1 F0 F1 B0 B1
(·4: a wait of 4 units)"""


def orders(*texts: str) -> list[list[Action]]:
    return [[Action(one[0], stage, int(one[1:])) for one in text.split()] for stage, text in enumerate(texts)]


def test_passes_and_waits_stand_in_order() -> None:
    run = run_schedule(orders("F0 F1 B0 B1", "F0 F1 B0 B1"), Costs.equal(2))
    assert in_a_strip(run.events, 2) == GPIPE_OF_TWO
    assert in_a_strip(run_schedule(orders("F0 B0"), Costs.equal(1)).events, 1) == "stage 0  F0 B0"


def test_where_ranks_are_stuck_a_strip_shows_what_ran_until_then() -> None:
    with pytest.raises(ScheduleError) as raised:
        run_schedule(orders("F0 B0 F1 B1", "F0 F1 B0 B1"), Costs.equal(2))
    error = raised.value
    assert error.stuck == {0: Action("B", 0, 0), 1: Action("F", 1, 1)}
    shown = in_a_strip(error.so_far, 2, error.stuck)
    assert shown.splitlines()[:2] == ["stage 0  F0 ?B0", "stage 1  ·1 F0 ?F1"]
    assert shown.endswith("(·4: a wait of 4 units; ?: never begins)")


def test_long_lines_are_cut_between_passes_and_of_many_ranks_some_are_shown() -> None:
    n = 40
    text = " ".join(f"F{k} B{k}" for k in range(n))
    lines = in_a_strip(run_schedule(orders(*[text] * 7), Costs.equal(7)).events, 7).splitlines()
    assert len(lines) == 7 and lines[5] == "and 2 more"
    assert max(map(len, lines)) <= 80 and lines[0].endswith(" …")


def verdict_of(path: str) -> Verdict:
    answer = example("wrong", path)
    cases = CaseSet(answer.exercise)
    return cases.verdict(cases.runs(answer.source))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("18-gpipe/is_1f1b", "stage 0  F0 F1 F2 F3 ·6 B0 F4"),
        ("18-one-f-one-b/warms_up_from_the_other_end", "stage 3  ·3 F0 ?F1"),
        ("18-interleaved/warms_up_by_one_too_many", "rank 3  ·3 F0.0 F0.1 F0.2 F0.3 F1.0 F1.1 B1.0"),
    ],
)
def test_a_verdict_shows_what_was_played(path: str, line: str) -> None:
    verdict = verdict_of(path)
    played = dict(verdict.rows)["played"]
    assert line in played
    assert played in unescape(as_html(verdict))
    assert len(as_text(verdict).splitlines()) <= MAX_LINES
    assert "played" not in dict(verdict.redacted().rows), "of hidden cases nothing is shown"


def test_a_text_has_the_whole_strip_or_none_of_it() -> None:
    verdict = Verdict("18-gpipe", "failed", 0.0, "no", rows=(("case", "x"), ("played", GPIPE_OF_TWO)))
    assert as_text(verdict).splitlines()[2:] == [
        "  played    stage 0  F0 F1 ·3 B0 B1",
        "            stage 1  ·1 F0 F1 B0 B1",
        "            (·4: a wait of 4 units)",
    ]
    crowded = Verdict("18-gpipe", "failed", 0.0, "no", (*[("case", "x")] * 8, ("played", GPIPE_OF_TWO)), "Look.")
    assert "stage" not in as_text(crowded)


@pytest.mark.slow
def test_the_feedback_page_shows_the_strip_of_a_public_case() -> None:
    failed = verdict_of("18-one-f-one-b/gpipe")
    failed = Verdict(**{**vars(failed), "exercise": EXERCISE})
    page = unescape(page_of(graded_notebook(scores=(0.0, 2.0, 0.0)), result_of(failed)))
    assert "stage 0  F0 F1 F2 F3 F4 F5 F6 F7 ·9 B0 B1" in page
