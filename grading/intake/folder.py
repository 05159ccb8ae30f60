"""Read a folder of submissions: plain files only, never through a link.

Nothing in it is changed; whose the files are is not looked at.
"""

from __future__ import annotations

import datetime
import functools
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from grading.errors import UserError
from grading.files import Unreadable, read_plain_file
from grading.intake.archive import MAX_MEMBERS
from grading.intake.arrived import Arrivals, ArrivedFile, Refusal, RefusedFile
from grading.intake.names import has_unseen, is_clutter, most_of, refuse_twins
from grading.rebuild.submission import MAX_BYTES

MAX_DEPTH = 16
"""Folders in folders. The deepest that a submission may lie in is the third."""

EMPTY = "it is an empty folder with the name of a notebook"


def read_folder(folder: Path) -> Arrivals:
    """The files below a folder, at their time of change. Raises UserError where it is none or holds too much."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder", "give the folder that has a folder or a file for each student")
    folder, result = folder.resolve(), Arrivals()
    found: list[str] = []
    folders: list[str] = []
    for item in _walk(folder, result.refused):
        found.append(Path(item.path).relative_to(folder).as_posix())
        if len(found) > MAX_MEMBERS:
            remedy = f"give the folder of one lab's submissions, without what is {most_of(found)}"
            raise UserError(f"{folder} has more than {MAX_MEMBERS:,} files and folders", remedy)
        if item.is_dir(follow_symlinks=False):
            folders.append(found[-1])
        elif not is_clutter(found[-1]):
            _look(folder, item, found[-1], result)
    result.refused += [RefusedFile(path, EMPTY) for path in _posing_as_notebooks(folders, found)]
    return refuse_twins(result)


def _posing_as_notebooks(folders: Sequence[str], found: Sequence[str]) -> list[str]:
    """Folders with a notebook's name and nothing in them: what should have been handed in got lost on the way."""
    with_something = {path.rpartition("/")[0] for path in found}
    return [path for path in folders if path.endswith(".ipynb") and path not in with_something and not is_clutter(path)]


def _look(top: Path, item: os.DirEntry, path: str, result: Arrivals) -> None:
    try:
        status = item.stat(follow_symlinks=False)
    except OSError as error:
        result.refused.append(RefusedFile(path, f"it cannot be read: {error.strerror}"))
        return
    if has_unseen(path):
        result.refused.append(RefusedFile(path, "its name has invisible characters: rename it"))
    elif stat.S_ISLNK(status.st_mode):
        result.refused.append(RefusedFile(path, "it is a link"))
    elif not stat.S_ISREG(status.st_mode):
        result.refused.append(RefusedFile(path, "it is a device or a pipe"))
    else:
        read = functools.partial(_read, top, Path(item.path))
        result.entries.append(ArrivedFile(path, status.st_size, _time(status.st_mtime), read))


def _time(seconds: float) -> datetime.datetime | None:
    """None for a time that no calendar has; some disks take any number."""
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _walk(top: Path, refused: list[RefusedFile]) -> Iterator[os.DirEntry]:
    """Everything below, folders too, by name. It does not call itself: folders can be deeper than a stack."""
    waiting = [(str(top), 0)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            if depth > MAX_DEPTH:
                raise OSError(0, f"it lies in more than {MAX_DEPTH} folders")
            items = sorted(os.scandir(folder), key=lambda item: item.name)
        except OSError as error:
            refused.append(
                RefusedFile(Path(folder).relative_to(top).as_posix(), f"it cannot be read: {error.strerror}")
            )
            continue
        yield from items
        waiting += [(item.path, depth + 1) for item in reversed(items) if item.is_dir(follow_symlinks=False)]


def _read(top: Path, path: Path) -> bytes:
    try:
        # Some time has passed since it was found, and whoever may write there may have put another in its place.
        return read_plain_file(path, MAX_BYTES, top=top)
    except (Unreadable, OSError) as error:
        raise Refusal(str(error)) from error
