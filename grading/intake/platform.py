"""Whose file it is, by the way a learning platform names what it gives out. The bytes are not looked at.

Moodle (mod/assign/classes/downloader.php): "Full Name_NUMBER_assignsubmission_file_/lab.ipynb", or the same in one
name without the folder; other kinds of submission, as "onlinetext", are named likewise. NUMBER is drawn anew for each
assignment, so without a roster the student is the full name.
Canvas (lib/content_zipper.rb): "lastfirst_LATE_USER_ATTACHMENT_lab-1.ipynb"; attachments are numbered as they come.
Both write the time of the download into the archive, which says nothing about the time of submission.
Plain: STUDENT/LAB.ipynb, STUDENT/LAB/LAB.ipynb (nbgrader's own) or STUDENT_LAB.ipynb.
Gradescope says in a file of its own whose each folder is, which is another module's to read. Of repositories the folder
alone names the student, and whatever is in it is theirs.

The platform names the topmost part of a path alone. All that follows is the student's to name, as a classmate's folder
too, so it decides nothing: where it could be read as somebody else's, the file is refused.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grading.errors import UserError
from grading.intake.arrived import Refusal

MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>[0-9]+)_assignsubmission_[a-z]+(?:_(?P<file>.+)|_?)")
MOODLE_MARK = re.compile(r"(?=_[0-9]+_assignsubmission_)")
CANVAS_USER = re.compile(r"[1-9][0-9]*|anon_[A-Za-z0-9]+")
CANVAS_ATTACHMENT = re.compile(r"[1-9][0-9]*")
COPY = re.compile(r"(-\d{1,4}| ?\(\d{1,4}\))+$")
PLATFORMS = ("moodle", "canvas", "plain")
UNTIMED = ("moodle", "canvas")
"""Whose archives carry the time of the download."""
NBGRADERS = "submitted"
"""The folder in which nbgrader keeps the students' own."""


@dataclass(frozen=True)
class Sender:
    """Who a path says that it is from. `number` and `attempt` are the platform's own; `student` is the id to use
    where no roster says better; `file` is the name that the student gave the file. `when` is the time that the platform
    noted beside the file, in UTC.

        Sender("lovelaceada", "4711", "4711", "02_float_formats.ipynb", attempt=90210, late=True)
    """

    name: str
    number: str
    student: str
    file: str
    attempt: int = 0
    late: bool = False
    email: str = ""
    when: datetime.datetime | None = None

    @property
    def person(self) -> tuple[str, str]:
        """What tells two people apart, as far as the platform does."""
        return self.name, self.number or self.email


def sender_of(path: str, platform: str, lab: str) -> Sender | None:
    """Who a path below the wrapper is from by this platform's way of naming; None where it follows another way.

    Raises Refusal where it could be read as from two people.
    """
    path = unicodedata.normalize("NFC", path)
    ways = {"moodle": _moodle, "canvas": _canvas, "plain": _plain, "repositories": _repository}
    return ways[platform](path, lab)


def sender_by(pattern: re.Pattern, path: str) -> Sender | None:
    """Who a path is from by the instructor's own pattern: groups `student` and, if wanted, `attempt` and `file`.

    Raises Refusal where the pattern finds two students in it.
    """
    found = list(pattern.finditer(unicodedata.normalize("NFC", path)))
    if not found or not found[0]["student"]:
        return None
    students = list(dict.fromkeys(match["student"] for match in found if match["student"]))
    if len(students) > 1:
        raise Refusal(f"the pattern finds two students in it, {' and '.join(students)}: let the pattern begin with ^")
    groups = found[0].groupdict()
    attempt, file = groups.get("attempt") or "", groups.get("file") or path.rpartition("/")[2]
    return Sender(students[0], "", students[0], file, _number(attempt) if attempt.isdecimal() else 0)


def wrapper_of(paths: Sequence[str], platform: str, lab: str, name: str = "") -> str:
    """The folders that all paths lie in before the platform's own part, with a "/" at the end; empty for none.

    A folder that could be a student's is no wrapper, or whatever she put into it would be others'. In an archive of a
    learning platform that is the first one that the platform named. Elsewhere it is every folder but nbgrader's own and
    one that is called like the archive, which is `name`.
    """
    wrapper = []
    for parts in zip(*(path.split("/")[:-1] for path in paths), strict=False):
        is_students = MOODLE_MARK.search(parts[0]) if platform == "moodle" else platform == "plain"
        if len(set(parts)) > 1 or (is_students and parts[0] not in (NBGRADERS, name)):
            break
        wrapper.append(f"{parts[0]}/")
    found = "".join(wrapper)
    # In "ada.zip" the folder "ada" is hers after all.
    return found if any(_follows(path.removeprefix(found), platform, lab) for path in paths) else ""


def guess(paths: Sequence[str], lab: str, name: str = "") -> str:
    """The platform whose way all of the paths follow that follow any. Raises UserError where two could be meant."""
    follow = {}
    for platform in PLATFORMS:
        wrapper = wrapper_of(paths, platform, lab, name)
        follow[platform] = [_follows(path.removeprefix(wrapper), platform, lab) for path in paths]
    n_found = {platform: sum(follows) for platform, follows in follow.items()}
    n_any = sum(map(any, zip(*follow.values(), strict=True)))
    for platform in ("moodle", "canvas"):
        # A plain name may look like anything, the platforms' own names hardly like each other's.
        if n_found[platform] and n_found[platform] == n_any:
            return platform
    if n_found["moodle"] or n_found["canvas"]:
        counts = ", ".join(f"{count} like {platform}" for platform, count in n_found.items() if count)
        raise UserError(f"the files are named in several ways ({counts})", "say --platform moodle, canvas or plain")
    return "plain"


def is_lab_name(name: str, lab: str) -> bool:
    """Whether a file's name is the lab's, but for the number that browsers and platforms give to copies."""
    stem, _, suffix = name.rpartition(".")
    return suffix.lower() == "ipynb" and COPY.sub("", stem).casefold() == lab.casefold()


def _follows(path: str, platform: str, lab: str) -> bool:
    try:
        return sender_of(path, platform, lab) is not None
    except Refusal:
        return True


def _moodle(path: str, lab: str) -> Sender | None:
    top, *inner = path.split("/")
    if MOODLE_MARK.search(top) and len(MOODLE_MARK.findall(path)) > 1:
        raise Refusal("it looks like the file of two students: ask for the file under a plain name")
    found = MOODLE.fullmatch(top)
    # Of a folder, all of the name is the platform's.
    if not found or bool(inner) == bool(found["file"]):
        return None
    name = found["name"].strip()
    return Sender(name, found["number"], name, inner[-1] if inner else found["file"])


def _canvas(path: str, lab: str) -> Sender | None:
    if "/" in path:
        return None
    # A name can end with a number, and a file's begin with one. What is called like the lab is what the student chose.
    found = list(_readings(path))
    senders = [sender for sender in found if is_lab_name(sender.file, lab)] or found
    if len(senders) > 1:
        users = " or ".join(sender.number for sender in senders)
        raise Refusal(f"its name can be read as from user {users}: ask for the file as {lab}.ipynb")
    return senders[0] if senders else None


def _readings(path: str) -> Iterator[Sender]:
    """Every way in which Canvas could have made it: of a name, LATE, the user's number, the attachment's and a file."""
    parts = path.split("_")
    for at in range(len(parts) - 2):
        width = 2 if parts[at] == "anon" else 1
        number, rest = "_".join(parts[at : at + width]), parts[at + width :]
        if len(rest) < 2 or not (CANVAS_USER.fullmatch(number) and CANVAS_ATTACHMENT.fullmatch(rest[0])):
            continue
        late = at > 0 and parts[at - 1].upper() == "LATE"
        name = parts[: at - late]
        # Canvas takes the marks from a number inside of a name, just so that it cannot be read as somebody else's.
        if not any(re.fullmatch("[0-9]+", part) for part in name[1:-1]):
            yield Sender("_".join(name), number, number, "_".join(rest[1:]), _number(rest[0]), late)


def _plain(path: str, lab: str) -> Sender | None:
    *folders, file = path.split("/")
    if not folders:
        student, found, rest = file.partition(f"_{lab}")
        return Sender(student, "", student, lab + rest) if found and student else None
    # Whose a bare LAB/LAB.ipynb is, nobody can tell.
    if folders[0] == lab:
        return None
    if folders[1:] not in ([], [lab]):
        where = f'it lies in the folder "{folders[1]}" in "{folders[0]}", and either could be the student'
        raise Refusal(f"{where}: move it to {folders[0]}/{file}, or collect what is in {folders[0]}")
    return Sender(folders[0], "", folders[0], file)


def _repository(path: str, lab: str) -> Sender | None:
    student, _, inner = path.partition("/")
    return Sender(student, "", student, inner.rpartition("/")[2]) if inner else None


def _number(digits: str) -> int:
    # Python refuses to read thousands of digits; so many are no attempt's number either.
    return int(digits[:18])
