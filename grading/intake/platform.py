"""Whose file it is, by the way a learning platform names what it gives out. The bytes are not looked at.

Moodle (mod/assign/classes/downloader.php): "Full Name_NUMBER_assignsubmission_file_/lab.ipynb", or the same in one
name without the folder; other kinds of submission, as "onlinetext", are named likewise. NUMBER is drawn anew for each
assignment, so without a roster the student is the full name.
Canvas (lib/content_zipper.rb): "lastfirst_LATE_USER_ATTACHMENT_lab-1.ipynb"; attachments are numbered as they come.
Both write the time of the download into the archive, which says nothing about the time of submission.
Plain: STUDENT/LAB.ipynb, STUDENT/LAB/LAB.ipynb (nbgrader's own) or STUDENT_LAB.ipynb.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from grading.errors import UserError

MOODLE = re.compile(
    r"(?:^|/)(?P<name>[^_/]+)_(?P<number>\d+)_assignsubmission_(?P<kind>[a-z]+)(?:_?/(?:.*/)?|_)(?P<file>[^/]+)$"
)
CANVAS = re.compile(
    r"(?:^|/)(?:(?P<name>\w+?)_)??(?:(?P<late>LATE)_)?(?P<number>\d+|anon_[A-Za-z0-9]+)_(?P<attempt>\d+)_(?P<file>[^/]+)$"
)
COPY = re.compile(r"(-\d{1,4}| ?\(\d{1,4}\))+$")
PLATFORMS = ("moodle", "canvas", "plain")
UNTIMED = ("moodle", "canvas")
"""Whose archives carry the time of the download."""


@dataclass(frozen=True)
class Sender:
    """Who a path says that it is from. `number` and `attempt` are the platform's own; `student` is the id to use
    where no roster says better; `file` is the name that the student gave the file.

        Sender("lovelaceada", "4711", "4711", "02_float_formats.ipynb", attempt=90210, late=True)
    """

    name: str
    number: str
    student: str
    file: str
    attempt: int = 0
    late: bool = False

    @property
    def person(self) -> tuple[str, str]:
        """What tells two people apart, as far as the platform does."""
        return self.name, self.number


def sender_of(path: str, platform: str, lab: str) -> Sender | None:
    """Who a path is from by this platform's way of naming; None where it follows another way."""
    path = unicodedata.normalize("NFC", path)
    if platform == "moodle":
        found = MOODLE.search(path)
        return found and Sender(found["name"], found["number"], found["name"].strip(), found["file"])
    if platform == "canvas":
        found = CANVAS.search(path)
        if not found:
            return None
        number, attempt = found["number"], _number(found["attempt"])
        return Sender(found["name"] or "", number, number, found["file"], attempt, bool(found["late"]))
    return _plain(path, lab)


def sender_by(pattern: re.Pattern, path: str) -> Sender | None:
    """Who a path is from by the instructor's own pattern: groups `student` and, if wanted, `attempt` and `file`."""
    found = pattern.search(unicodedata.normalize("NFC", path))
    if not found or not found["student"]:
        return None
    groups = found.groupdict()
    attempt, file = groups.get("attempt") or "", groups.get("file") or path.rpartition("/")[2]
    return Sender(found["student"], "", found["student"], file, _number(attempt) if attempt.isdecimal() else 0)


def guess(paths: Iterable[str], lab: str) -> str:
    """The platform whose way all of the paths follow that follow any. Raises UserError where two could be meant."""
    paths = list(paths)
    n_found = {name: sum(sender_of(path, name, lab) is not None for path in paths) for name in PLATFORMS}
    n_any = sum(any(sender_of(path, name, lab) for name in PLATFORMS) for path in paths)
    for name in ("moodle", "canvas"):
        # A plain name may look like anything, the platforms' own names hardly like each other's.
        if n_found[name] and n_found[name] == n_any:
            return name
    if n_found["moodle"] or n_found["canvas"]:
        counts = ", ".join(f"{count} like {name}" for name, count in n_found.items() if count)
        raise UserError(f"the files are named in several ways ({counts})", "say --platform moodle, canvas or plain")
    return "plain"


def is_lab_name(name: str, lab: str) -> bool:
    """Whether a file's name is the lab's, but for the number that browsers and platforms give to copies."""
    stem, _, suffix = name.rpartition(".")
    return suffix.lower() == "ipynb" and COPY.sub("", stem).casefold() == lab.casefold()


def _plain(path: str, lab: str) -> Sender | None:
    *folders, name = path.split("/")
    in_lab = bool(folders) and folders[-1] == lab
    if in_lab:
        folders.pop()
    # Deeper down, a notebook by another name may lie in any folder that the student made.
    if folders and (in_lab or len(folders) == 1 or is_lab_name(name, lab)):
        return Sender(folders[-1], "", folders[-1], name)
    # Whose a bare LAB/LAB.ipynb is, nobody can tell.
    student, found, rest = name.partition(f"_{lab}")
    return Sender(student, "", student, lab + rest) if found and student and not folders else None


def _number(digits: str) -> int:
    # Python refuses to read thousands of digits; so many are no attempt's number either.
    return int(digits[:18])
