"""The way through a real nbgrader exchange: nbgrader's own commands fetch and submit; then collect and grade.

Everybody is an account of their own (tests/grading/campus.py).
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from grading.course import Course
from grading.intake.secret import SECRET
from grading.intake.store import archived_path
from grading.log import Log
from tests.grading.campus import NEEDS_ACCOUNTS, UIDS, Campus, open_campus
from tests.grading.lessons import LAB, SOLUTION, grade

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process"), *NEEDS_ACCOUNTS]
WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """A course released to the exchange and fetched by the students: the same for every test."""
    campus = open_campus(tmp_path_factory.mktemp("campus"))
    for name in ("ada", "bob"):
        campus.nbgrader(name, "fetch_assignment", LAB)
    return campus.top


@pytest.fixture
def campus(released, tmp_path) -> Campus:
    shutil.copytree(released, tmp_path / "campus")
    for path in (released, *released.rglob("*")):
        status = path.stat()
        os.chown(tmp_path / "campus" / path.relative_to(released), status.st_uid, status.st_gid)
    return Campus(tmp_path / "campus")


def points(course: Course, student: str) -> float:
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        return gradebook.find_submission(LAB, student).score


def test_from_release_to_the_grade_of_a_second_submission(campus) -> None:
    first = campus.hand_in("ada", WRONG)
    campus.hand_in("bob", SOLUTION)
    done = campus.teacher("collect", "/mnt/course", "00", "--exchange")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 taken, 0 unchanged, 0 refused" in done.stdout
    course = campus.course
    assert course.students(LAB) == ["ada", "bob"]
    assert grade(course, LAB, ["ada", "bob"], workers=1) == []
    assert (points(course, "ada"), points(course, "bob")) == (2, 3)

    second = campus.hand_in("ada", SOLUTION)
    done = campus.teacher("collect", "/mnt/course", "00", "--exchange")
    assert "1 taken, 1 unchanged, 0 refused" in done.stdout, done.stdout + done.stderr
    assert grade(course, LAB, ["ada", "bob"], workers=1) == []
    assert points(course, "ada") == 3
    received = [entry.facts for entry in Log(course).entries() if entry.kind == "received"]
    assert [facts["student"] for facts in received] == ["ada", "bob", "ada"]
    assert archived_path(course, LAB, received[0]["submission"]).read_bytes() == first
    assert archived_path(course, LAB, received[2]["submission"]).read_bytes() == second
    assert Log(course).verify() == []


def plant(campus: Campus, name: str, folder: str, link: str = "") -> None:
    """As mallory, put a folder straight into the exchange: a copy of the release, or a link to somewhere."""
    inbound = f"/mnt/exchange/small/inbound/{folder}"
    copy = f"ln -s {link}" if link else f"cp /mnt/exchange/small/outbound/{LAB}/{LAB}.ipynb"
    done = campus.run(name, "sh", "-c", f"mkdir '{inbound}' && {copy} '{inbound}/{LAB}.ipynb' && chmod 755 '{inbound}'")
    assert done.returncode == 0, done.stderr


def test_what_is_planted_in_the_exchange_is_refused_and_the_rest_is_taken(campus) -> None:
    """Also of a folder that says it is newer than the true one, and of a file that belongs to another than its folder,
    as a second name of a classmate's file would, where the system lets one be given.
    """
    handed_in = campus.hand_in("ada", SOLUTION)
    when = "2026-01-31 12:00:00.000000 UTC"
    plant(campus, "mallory", f"bob+{LAB}+{when}")
    plant(campus, "mallory", f"mallory+{LAB}+{when}", link=f"/mnt/course/source/{LAB}/{LAB}.ipynb")
    plant(campus, "mallory", f"ada+{LAB}+no date")
    plant(campus, "mallory", f"ada+{LAB}+2099-01-31 12:00:00.000000 UTC")
    plant(campus, "eve", f"eve+{LAB}+{when}")
    os.chown(campus.top / f"exchange/small/inbound/eve+{LAB}+{when}/{LAB}.ipynb", UIDS["ada"], UIDS["ada"])
    done = campus.teacher("collect", "/mnt/course", "00", "--exchange")
    assert done.returncode == 1
    assert "1 taken, 0 unchanged, 5 refused" in done.stdout, done.stdout + done.stderr
    assert "it says it is from bob but belongs to mallory" in done.stdout
    assert "it says it is from ada but belongs to mallory" in done.stdout
    assert f"{LAB}.ipynb is missing, a link, or cannot be read" in done.stdout
    assert "its name is none that nbgrader gives" in done.stdout
    assert f"{LAB}.ipynb belongs to ada, its folder to eve" in done.stdout
    assert campus.course.students(LAB) == ["ada"]
    assert campus.course.submitted(LAB, "ada").read_bytes() == handed_in


def test_nbgraders_own_collect_follows_the_link_to_the_solution(campus) -> None:
    """The control: without this hole we would leave the copying to nbgrader."""
    plant(campus, "mallory", f"mallory+{LAB}+2026-01-31 12:00:00 UTC", link=f"/mnt/course/source/{LAB}/{LAB}.ipynb")
    done = campus.run("teacher", "sh", "-c", f"cd /mnt/course && {sys.executable} -m nbgrader collect {LAB}")
    assert done.returncode == 0, done.stderr
    taken = campus.course.submitted(LAB, "mallory")
    assert taken.read_bytes() == campus.course.source(LAB).read_bytes()


def test_an_exchange_that_is_not_there_is_said(campus) -> None:
    shutil.rmtree(campus.top / "exchange" / "small")
    done = campus.teacher("collect", "/mnt/course", "00", "--exchange")
    assert done.returncode == 2
    assert done.stderr.startswith(f"grading: nbgrader could not collect {LAB}: ")
    assert "Course not found: /mnt/exchange/small/inbound" in done.stderr


def fetched_pages(campus: Campus, name: str) -> list[Path]:
    campus.nbgrader(name, "fetch_feedback", LAB)
    return sorted((campus.home(name) / LAB / "feedback").rglob("*.html"))


@pytest.mark.full("classroom")
def test_feedback_comes_back_through_the_exchange_to_those_who_handed_in_there(campus) -> None:
    """Also where a classmate's submission came another way, or without the secret that the exchange knows a page by."""
    campus.hand_in("ada", SOLUTION)
    campus.hand_in("bob", WRONG)
    (inbound,) = (campus.top / "exchange/small/inbound").glob("bob+*")
    (inbound / SECRET).write_text("../../mine")
    by_hand = campus.course.submitted(LAB, "carol")
    by_hand.parent.mkdir(parents=True)
    shutil.copy(campus.course.root / "release" / LAB / f"{LAB}.ipynb", by_hand)
    campus.give_course_to_teacher()
    done = campus.teacher("collect", "/mnt/course", "00", "--exchange")
    assert done.returncode == 0, done.stdout + done.stderr
    assert grade(campus.course, LAB, ["ada", "bob", "carol"], workers=1) == []
    campus.give_course_to_teacher()
    done = campus.teacher("feedback", "/mnt/course", "00", "--exchange")
    assert done.returncode == 0, done.stderr
    assert "1 of them are in the exchange" in done.stdout, done.stdout
    assert "not handed in through it, so hand it back another way: bob, carol" in done.stdout
    (page,) = fetched_pages(campus, "ada")
    assert page.read_bytes() == campus.course.feedback(LAB, "ada").read_bytes()
    assert fetched_pages(campus, "bob") == []
