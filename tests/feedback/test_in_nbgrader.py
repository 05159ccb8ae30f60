"""nbgrader's own command makes our page, with the points, the penalty and the comments of its gradebook."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from tests.feedback.page import Read
from tests.grading.lessons import HIDDEN_TEST, LAB, cell_of, grade, make_course, submit

pytestmark = [pytest.mark.full("classroom")]

ROOT = Path(__file__).resolve().parents[2]
TELLS = "def rms(x, dim):\n    return x.float().square().mean().sqrt()"


def test_its_command_makes_our_page(tmp_path: Path) -> None:
    course = make_course(tmp_path / "course", '\nc.LateSubmissionPlugin.penalty_method = "zero"\n')
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate=datetime(2026, 3, 2))

    def write(notebook):
        cell_of(notebook, "00-open").source = "because of $2^{24}$"

    submit(course, "ada", change=write, timestamp="2026-03-01 10:00:00 UTC")
    submit(course, "bob", TELLS, timestamp="2026-03-05 10:00:00 UTC")
    assert grade(course, LAB, ["ada", "bob"], workers=1, isolation="none") == []
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        found = gradebook.find_grade("00-open", LAB, LAB, "ada")
        found.manual_score, found.needs_manual_grade = 1.5, False
        gradebook.find_comment("00-open", LAB, LAB, "ada").manual_comment = "Say **which** bits."
        gradebook.db.commit()

    words = [sys.executable, "-m", "nbgrader", "generate_feedback", LAB]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    done = subprocess.run(words, cwd=course.root, env=surroundings, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    page = {student: Read(course.feedback(LAB, student).read_text(encoding="utf-8")) for student in ("ada", "bob")}

    assert "4.5 of 5 points" in page["ada"].text and "1.5 of 2" in page["ada"].text
    assert "Say which bits." in page["ada"].text and ("msup", {}) in page["ada"].tags
    assert "came late" not in page["ada"].text
    assert "0 of 5 points" in page["bob"].text and "which cost 2 points" in page["bob"].text
    assert "public cases pass" in page["bob"].text and "dim is not used" in page["bob"].text
    for one in page.values():
        assert one.open == [] and HIDDEN_TEST not in one.text and str(course.root) not in one.text
