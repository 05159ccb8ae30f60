"""Which paths and which students' names are safe: inside the course's folder, no pattern to nbgrader, and read by a
person as they are.

Nothing is repaired: what is refused here is for a person to rename.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence

from grading.intake.arrived import Arrivals, ArrivedFile, RefusedFile

MAX_NAME_BYTES = 200
"""Leaves room for the suffixes of temporary files in the 255 bytes that file systems allow."""

MAX_NAME_CHARACTERS = 128
"""nbgrader's gradebook has room for no more. SQLite takes them all the same, PostgreSQL refuses the grade."""

MAX_PATH_CHARACTERS = 1_000

ELSEWHERE = re.compile(r"[*?\[\]/\\]")
"""Characters that lead elsewhere, and those that nbgrader takes for a pattern: "a*" would be everybody with an a."""

JOINERS = "\u200c\u200d"
"""They are not seen either, but Persian and Indian names are spelled with them."""

FILLERS = re.compile("[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\uffa0]")
"""Letters that nobody sees, though Python calls them printable: fillers of Hangul, blanks of Braille and their like."""

SELECTORS = re.compile("[\\ufe00-\\ufe0f\\U000e0100-\\U000e01ef]")
"""How the letter before them is drawn: not seen either, but Japanese names are spelled with them."""

CLUTTER = re.compile(
    r"(^|/)(__MACOSX|\.ipynb_checkpoints|\.git|__pycache__)(/|$)|(^|/)(\._[^/]*|\.DS_Store|Thumbs\.db)$"
)
"""What operating systems and editors leave behind; nobody handed it in."""


def is_clutter(path: str) -> bool:
    return CLUTTER.search(path) is not None


def has_unseen(name: str) -> bool:
    """Whether it has invisible characters: they steer a terminal, turn the direction of writing, end a line, or
    make one name look like another. No name needs them.
    """
    return FILLERS.search(name) is not None or any(
        not (char.isprintable() or char in JOINERS or unicodedata.category(char) == "Zs") for char in name
    )


def wrong_with_path(path: str) -> str | None:
    """Why a path from an archive cannot be trusted; None where it lies plainly below the archive's top."""
    if len(path) > MAX_PATH_CHARACTERS:
        return f"its name has more than {MAX_PATH_CHARACTERS:,} characters"
    if has_unseen(path):
        return "its name has invisible characters: rename it"
    if "\\" in path:
        return "its name has a backslash, which on some systems leads out of the folder"
    if path.startswith("/"):
        return "its name begins at the top of the disk"
    if re.match(r"[A-Za-z]:", path):
        return "its name begins with a drive letter"
    if any(part in ("", ".", "..") for part in path.removesuffix("/").split("/")):
        return "its name leads out of the folder"
    return None


def wrong_with_student(student: str) -> str | None:
    """Why nobody can have this name in an nbgrader course; None where it will do."""
    if not student:
        return "the name of the student is empty"
    if ELSEWHERE.search(student):
        return f"nbgrader cannot take the name {student!a}"
    if has_unseen(student):
        return f"the name {student!a} has invisible characters"
    if student.startswith(".") or student != student.strip():
        return f"the name {student!a} begins with a dot, or begins or ends with a space"
    if len(student.encode()) > MAX_NAME_BYTES:
        return f"the name is longer than {MAX_NAME_BYTES} bytes"
    if len(student) > MAX_NAME_CHARACTERS:
        return f"the name is longer than {MAX_NAME_CHARACTERS} characters, for which nbgrader's gradebook has no room"
    return None


def folded(name: str) -> str:
    """The same for names that some file systems or people would take for one."""
    seen = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    # A page shows any number of blanks as one.
    seen = " ".join(SELECTORS.sub("", FILLERS.sub("", seen)).split())
    # Folding can undo what was composed, and the other way round.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen.casefold()).casefold())


def most_of(paths: Sequence[str]) -> str:
    """Where most of too many files lie, for the message: the two topmost folders tell whose they are."""
    tops = Counter("/".join(path.split("/")[:-1][:2]) for path in paths)
    (top, n), *_ = tops.most_common(1)
    return f"in {top or 'the folder itself'} ({n:,} of {len(paths):,})"


def refuse_twins(arrivals: Arrivals) -> Arrivals:
    """Without the entries whose path is there twice, or differs from another in case or normalisation alone."""
    groups: dict[str, list[ArrivedFile]] = defaultdict(list)
    for entry in arrivals.entries:
        groups[folded(entry.path)].append(entry)
    result = Arrivals(refused=list(arrivals.refused))
    for group in groups.values():
        if len(group) == 1:
            result.entries += group
        elif len({entry.path for entry in group}) == 1:
            reason = f"it is there {len(group)} times, and nobody can tell which one is meant"
            result.refused.append(RefusedFile(group[0].path, reason))
        else:
            reason = "another name differs from it only in case or in how its letters are encoded"
            result.refused += [RefusedFile(entry.path, reason) for entry in group]
    return result
