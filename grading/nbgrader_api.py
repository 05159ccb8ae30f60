"""nbgrader's own Python API on a course, with the course's configuration and a log file in place of a flood.

What nbgrader does is not changed here; only how it is called, and how its failures are reported.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from pathlib import Path

from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config
from traitlets.config.loader import ConfigFileNotFound, PyFileConfigLoader

from grading.course import CONFIG, Course
from grading.errors import UserError
from grading.terminal import lines_in


class NbgraderFailed(Exception):
    """nbgrader reported a failure; the message is its last error line, the log file has the rest."""


def load_config(course: Course) -> Config:
    """The course's nbgrader_config.py as nbgrader would read it, the instructor's own changes included."""
    try:
        return PyFileConfigLoader(CONFIG, path=str(course.root)).load_config()
    except ConfigFileNotFound as error:
        raise UserError(f"{course.config} cannot be read", str(error)) from error
    except Exception as error:
        # It is a program, and the instructor's own.
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise UserError(f"{course.config}{line}: {type(error).__name__}: {error}", "correct the file") from error


def open_api(course: Course, more: Config | None = None) -> NbGraderAPI:
    """nbgrader's API on this course, logging to `.grading/nbgrader.log`; `more` goes over the course's own settings."""
    # nbgrader starts `alembic` by name.
    bin_folder = str(Path(sys.executable).parent)
    if bin_folder not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = bin_folder + os.pathsep + os.environ.get("PATH", "")
    # nbgrader's own queries warn with SQLAlchemy 2.1; the grades are right (a test reads them back).
    warnings.filterwarnings("ignore", category=SAWarning)
    config = load_config(course)
    config.merge(more or Config())
    log = _log_to(course.root / ".grading" / "nbgrader.log")
    return NbGraderAPI(CourseDirectory(config=config, log=log), config=config, log=log)


def expect_success(course: Course, done: dict) -> None:
    """Raise NbgraderFailed, or the KeyboardInterrupt that nbgrader swallowed, unless the call succeeded."""
    if done["success"]:
        return
    trace = done.get("error", "")
    if trace.rstrip().endswith("KeyboardInterrupt"):
        raise KeyboardInterrupt
    reason = _reason(done.get("log", ""), trace)
    log = course.root / ".grading" / "nbgrader.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("a") as file:
        # It is read at a terminal, and names and texts of students stand in it.
        file.writelines(f"{line}\n" for line in lines_in(done.get("log", "") + trace))
    raise NbgraderFailed(f"{reason} (the whole story: {log})")


class _Harmless(logging.Formatter):
    """Records as `lines_in` shows a text."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(lines_in(super().format(record)))


def _reason(log: str, trace: str) -> str:
    """The line that says most: the exception that nbgrader logged, else its last error, else what it raised."""
    lines = log.splitlines()
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt|Unreadable|Fault)\b.*: ", line)]
    errors = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")]
    last = [line for line in trace.splitlines() if line.strip()][-1:]
    reasons = raised[-1:] or [line for line in errors if not line.startswith("Traceback")][-1:] or last
    return reasons[0][:300] if reasons else "no reason was given"


def _log_to(path: Path) -> logging.Logger:
    path.parent.mkdir(exist_ok=True)
    log = logging.getLogger(f"grading.nbgrader.{path}")
    log.setLevel(logging.INFO)
    log.propagate = False
    if not log.handlers:
        handler = logging.FileHandler(path, delay=True)
        handler.setFormatter(_Harmless())
        log.addHandler(handler)
    return log
