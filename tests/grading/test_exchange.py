"""The way through a real nbgrader exchange: nbgrader's own commands fetch and submit; then collect and grade.

With root's rights, everybody is an account of their own, in a namespace where only the exchange is shared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from grading.course import Course
from grading.intake.store import archived_path
from grading.log import Log
from tests.grading.lessons import LAB, SOLUTION, cell_of, grade, make_course

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("in_process"),
    pytest.mark.skipif(os.getuid() != 0, reason="accounts of their own need root's rights"),
    pytest.mark.skipif(not (shutil.which("bwrap") and shutil.which("setpriv")), reason="needs bubblewrap and setpriv"),
]
REPOSITORY = Path(__file__).resolve().parents[2]
EXCHANGE = '\nc.Exchange.root = "/mnt/exchange"\n'
UIDS = {"teacher": 20_000, "ada": 20_001, "bob": 20_002, "mallory": 20_003, "eve": 20_004}
WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"


@dataclass(frozen=True)
class Campus:
    """A machine with accounts: /mnt/exchange for all, /mnt/course for the teacher, /mnt/home for each."""

    top: Path

    @property
    def course(self) -> Course:
        return Course.at(self.top / "course")

    def home(self, name: str) -> Path:
        return self.top / f"home-{name}"

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess:
        """Run a command as this account, in its home."""
        interpreters = [place for place in (sys.base_prefix, sys.prefix) if place.startswith("/root/")]
        command = ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--tmpfs", "/root", "--tmpfs", "/mnt"]
        for place in interpreters:
            for parent in reversed(Path(place).parents[:-2]):
                command += ["--perms", "0755", "--dir", str(parent)]
            command += ["--ro-bind", place, place]
        command += ["--bind", str(self.top / "exchange"), "/mnt/exchange", "--bind", str(self.home(name)), "/mnt/home"]
        if name == "teacher":
            command += ["--bind", str(self.top / "course"), "/mnt/course"]
        command += ["--ro-bind", str(self.top / "passwd"), "/etc/passwd", "--chdir", "/mnt/home"]
        command += ["setpriv", f"--reuid={UIDS[name]}", f"--regid={UIDS[name]}", "--clear-groups", *words]
        environment = {
            "HOME": "/mnt/home",
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "LANG": "C.UTF-8",
        }
        return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=120)

    def nbgrader(self, name: str, *words: str) -> None:
        course = ("--course", "small", "--Exchange.root=/mnt/exchange")
        done = self.run(name, sys.executable, "-m", "nbgrader", *words, *course)
        assert done.returncode == 0, done.stderr

    def hand_in(self, name: str, answer: str) -> bytes:
        """Write an answer into the fetched notebook and submit it; returns the notebook's bytes."""
        path = self.home(name) / LAB / f"{LAB}.ipynb"
        notebook = nbformat.read(path, 4)
        cell_of(notebook, "00-warm-up").source = answer
        nbformat.write(notebook, path)
        self.nbgrader(name, "submit", LAB)
        return path.read_bytes()

    def teacher(self, *words: str) -> subprocess.CompletedProcess:
        return self.run("teacher", sys.executable, "-m", "grading", *words)


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """A course of the teacher's, released to the exchange and fetched by the students: the same for every test."""
    top = tmp_path_factory.mktemp("campus")
    make_course(top / "course", EXCHANGE)
    accounts = [f"{name}:x:{uid}:{uid}::/mnt/home:/bin/sh" for name, uid in UIDS.items()]
    (top / "passwd").write_text("\n".join(["root:x:0:0::/root:/bin/sh", *accounts]) + "\n")
    (top / "passwd").chmod(0o644)
    campus = Campus(top)
    for name, uid in UIDS.items():
        campus.home(name).mkdir()
        os.chown(campus.home(name), uid, uid)
    for path in (top / "course", *(top / "course").rglob("*")):
        os.chown(path, UIDS["teacher"], UIDS["teacher"])
    (top / "exchange").mkdir()
    os.chown(top / "exchange", UIDS["teacher"], UIDS["teacher"])
    done = campus.teacher("release", "/mnt/course", "00", "--exchange")
    assert done.returncode == 0, done.stderr
    for name in ("ada", "bob"):
        campus.nbgrader(name, "fetch_assignment", LAB)
    return top


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
