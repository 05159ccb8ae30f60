"""The figures of the grading benchmark: what is taken from a run's times, and that nothing is claimed unmeasured."""

from __future__ import annotations

import pytest

from benchmarks import grading
from benchmarks._meter import Sample, Timed
from labkit import exercises


def timed(**changes: object) -> Timed:
    """Two at a time, ten seconds to start, then one done every half second; two seconds to end."""
    done_s = tuple(10 + 0.5 * i for i in range(-1, 19))
    samples = tuple(Sample(float(t), 5 + 0.2 * t, 1, 1) for t in range(21))
    return Timed(**{"n": 20, "at_a_time": 2, "total_s": 21.0, "done_s": done_s, "samples": samples, **changes}, **OWN)


OWN = {"own_s": {"a": 1.0, "b": 1.0, "c": 4.0}, "own_cpu_s": {}}


def test_the_start_is_told_apart_from_what_each_submission_takes() -> None:
    run = timed()
    assert run.warm_s == 10 and run.seconds_each == pytest.approx(0.5)
    assert run.start_and_end_s == pytest.approx(11)
    assert run.supervisor_cpu_s == pytest.approx(0.1)
    figures = grading._figures([run, run], 100)
    assert figures["per_minute_started"] == pytest.approx(120)
    assert figures["per_minute"] == pytest.approx(60 * 100 / 61, abs=0.01)


def test_the_weight_of_stocks_share_shows_when_it_had_the_easy_ones() -> None:
    assert grading._weight([timed()], 2) == pytest.approx(0.5)


def test_a_run_that_was_too_short_yields_no_figure() -> None:
    with pytest.raises(RuntimeError, match="too short"):
        _ = timed(samples=()).supervisor_cpu_s


def test_what_was_not_measured_is_not_claimed() -> None:
    result = {"trivial": {"kernel": {"times_stock": 12.0, "per_minute": 200.0}, "added": grading.NOT_RUN}}
    judged = {each["target"]: (each["measured"], each["met"]) for each in grading._judged(result)}
    assert judged.pop("lab trivial, kernel: times_stock at least 10") == (12.0, "yes")
    assert judged.pop("lab trivial, kernel: times_stock at least 20 (aim)") == (12.0, "NO")
    assert judged.pop("lab trivial, kernel: per_minute at least 240") == (200.0, "NO")
    assert set(judged.values()) == {(grading.NOT_RUN, grading.NOT_RUN)} and len(judged) == 10


def test_the_figures_are_shown_as_lines_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"per_minute": 120.0, "per_minute_started": 240.0, "start_and_end_s": 11.0}
    grading._show("trivial", {"kernel": figures, "added": {"submissions": 12, "added_wall_s": 0.1}})
    header, rule, row, *added = capsys.readouterr().out.splitlines()
    assert header.startswith("lab") and set(rule) == {"-", " "}
    assert row.split() == ["trivial", "kernel", "120.0", "240.0", "1", "1", "11.0"]
    assert (added[0].split(), added[2].split()) == (["submissions", "added_wall_s"], ["12", "0.1"])


def test_extra_credit_has_no_points_to_compare() -> None:
    """A blank optional exercise has all of the none that its check cell may give."""
    assert "02-merge-smallest" in exercises.of_lab("02")
    core = grading.with_points("02_float_formats")
    assert "02-decode" in core and "02-merge-smallest" not in core
