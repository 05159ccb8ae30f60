"""A machine with accounts: a teacher with a course, students with homes, and an exchange that all of them share.

With root's rights, everybody is an account of their own, in a namespace where only the exchange is shared. No account
of the machine is made or changed.
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

from grading.course import Course
from tests.grading.lessons import LAB, cell_of, make_course

REPOSITORY = Path(__file__).resolve().parents[2]
NEEDS_ACCOUNTS = [
    pytest.mark.skipif(os.getuid() != 0, reason="accounts of their own need root's rights"),
    pytest.mark.skipif(not (shutil.which("bwrap") and shutil.which("setpriv")), reason="needs bubblewrap and setpriv"),
]
EXCHANGE = '\nc.Exchange.root = "/mnt/exchange"\n'
UIDS = {"teacher": 20_000, "ada": 20_001, "bob": 20_002, "mallory": 20_003, "eve": 20_004}
ENVIRONMENT = {
    "HOME": "/mnt/home",
    "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    "PYTHONPATH": str(REPOSITORY),
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "LANG": "C.UTF-8",
}


@dataclass(frozen=True)
class Campus:
    """A machine with accounts: /mnt/exchange for all, /mnt/course for the teacher, /mnt/home for each."""

    top: Path

    @property
    def course(self) -> Course:
        return Course.at(self.top / "course")

    def home(self, name: str) -> Path:
        return self.top / f"home-{name}"

    def as_account(self, name: str, *words: str) -> list[str]:
        """The command that runs another one as this account, in its home."""
        interpreters = [place for place in (sys.base_prefix, sys.prefix) if place.startswith("/root/")]
        command = ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--tmpfs", "/root", "--tmpfs", "/mnt"]
        # Whatever it starts ends with it.
        command += ["--unshare-pid", "--proc", "/proc", "--die-with-parent"]
        for place in interpreters:
            for parent in reversed(Path(place).parents[:-2]):
                command += ["--perms", "0755", "--dir", str(parent)]
            command += ["--ro-bind", place, place]
        command += ["--bind", str(self.top / "exchange"), "/mnt/exchange", "--bind", str(self.home(name)), "/mnt/home"]
        if name == "teacher":
            command += ["--bind", str(self.top / "course"), "/mnt/course"]
        command += ["--ro-bind", str(self.top / "passwd"), "/etc/passwd", "--chdir", "/mnt/home"]
        return [*command, "setpriv", f"--reuid={UIDS[name]}", f"--regid={UIDS[name]}", "--clear-groups", *words]

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess:
        """Run a command as this account, in its home."""
        line = self.as_account(name, *words)
        return subprocess.run(line, env=ENVIRONMENT, text=True, capture_output=True, timeout=280)

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

    def give_course_to_teacher(self) -> None:
        """What a test has written there belongs to root."""
        for path in (self.top / "course", *(self.top / "course").rglob("*")):
            os.chown(path, UIDS["teacher"], UIDS["teacher"], follow_symlinks=False)

    def teacher(self, *words: str) -> subprocess.CompletedProcess:
        return self.run("teacher", sys.executable, "-m", "grading", *words)


def open_campus(top: Path) -> Campus:
    """A course of the teacher's in the folder `top`, released to the exchange."""
    make_course(top / "course", EXCHANGE)
    accounts = [f"{name}:x:{uid}:{uid}::/mnt/home:/bin/sh" for name, uid in UIDS.items()]
    (top / "passwd").write_text("\n".join(["root:x:0:0::/root:/bin/sh", *accounts]) + "\n")
    (top / "passwd").chmod(0o644)
    campus = Campus(top)
    for name, uid in UIDS.items():
        campus.home(name).mkdir()
        os.chown(campus.home(name), uid, uid)
    campus.give_course_to_teacher()
    (top / "exchange").mkdir()
    os.chown(top / "exchange", UIDS["teacher"], UIDS["teacher"])
    done = campus.teacher("release", "/mnt/course", "00", "--exchange")
    assert done.returncode == 0, done.stderr
    return campus
