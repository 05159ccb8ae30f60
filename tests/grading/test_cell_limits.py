"""What the cells of a submission may use together: time, threads, printed text."""

from __future__ import annotations

import re

import pytest

from grading.supervisor.attempts import run_steps
from grading.supervisor.cases import public_cases
from grading.supervisor.limits import CellLimits
from labkit import exercises
from tests.grading.steps import DOUBLE, GOOD, code, count_cpu, exercise, graded

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]


def test_cells_cannot_take_more_than_their_time_together(sandbox) -> None:
    steps = [code(f"c{n}", "import time; time.sleep(0.2)") for n in range(40)]
    transcript = run_steps(sandbox, steps, {}, CellLimits(one_s=0.5, all_s=1.0, submission_s=3.0))
    assert len(transcript.cells) == 40
    # Each takes a fifth of the second that all have; on a busy machine, longer.
    assert sum(cell.ok for cell in transcript.cells.values()) <= 5


def test_the_time_that_a_cell_was_allowed_is_named(sandbox) -> None:
    def cut(*seconds: float, **limits: float) -> str:
        steps = [code(f"c{n}", f"import time; time.sleep({wait})") for n, wait in enumerate(seconds)]
        return list(run_steps(sandbox, steps, {}, CellLimits(**limits)).cells.values())[-1].error

    began = r"it did not finish within \d\.?\d? s of wall time"
    assert re.fullmatch(rf"{began}: the cell was skipped", cut(9, one_s=0.5))
    left_by_cells = rf"{began}, which the cells before it left of 3 s: the cell was skipped"
    assert re.fullmatch(left_by_cells, cut(0.5, 9, one_s=2.9, all_s=3.0))
    left_of_all = rf"{began}, which were left of the notebook's 2 s: the cell was skipped"
    assert re.fullmatch(left_of_all, cut(9, one_s=9.0, all_s=9.0, submission_s=2.0))


def test_honest_threads_do_not_use_up_the_time_of_other_exercises(sandbox) -> None:
    slow = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    other = [code("99-slow", "def slow(x): return x"), exercise("99-slow")]
    result = graded(sandbox, code("a", slow + "time.sleep(0.5)"), code("99-double", GOOD), DOUBLE, *other)
    assert [item.outcome for item in result.exercises.values()] == ["passed", "passed"]


def test_printed_text_is_capped_over_all_cells(sandbox) -> None:
    steps = [code(f"c{n}", "print('x' * 60_000)") for n in range(30)]
    transcript = run_steps(sandbox, steps, {}, CellLimits(printed=100_000))
    assert sum(len(cell.printed) for cell in transcript.cells.values()) < 102_000


def test_cells_that_run_again_print_in_the_place_of_what_they_printed(sandbox) -> None:
    linger = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    steps = [code("a", linger), code("b", "print('x' * 30_000)"), code("99-double", GOOD), DOUBLE]
    steps += [code("99-slow", "def slow(x): return x"), exercise("99-slow"), code("c", "print('y' * 30_000)")]
    asked = {name: public_cases(exercises.find(name)) for name in ("99-double", "99-slow")}
    transcript = run_steps(sandbox, steps, asked, CellLimits(printed=70_000))
    assert not any(run.trouble for runs in transcript.exercises.values() for run in runs)
    assert [len(transcript.cells[name].printed) for name in "bc"] == [30_001, 30_001]


def test_a_forged_word_about_threads_does_not_begin_again_for_ever(sandbox, monkeypatch) -> None:
    forged = """
import grading.worker.job as job
def lie(channel, *args, **kwargs):
    channel.send("threads")
    return False
job._run_exercise = lie
"""
    jobs = count_cpu(sandbox, monkeypatch)
    found = graded(sandbox, code("a", forged), code("99-double", GOOD), DOUBLE).exercises["99-double"]
    assert (found.outcome, len(jobs) < 10) == ("limit", True)
