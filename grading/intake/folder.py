"""Read a folder of submissions: plain files only, never through a link.

Nothing in it is changed; whose the files are is not looked at.
"""

from __future__ import annotations

import datetime
import functools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from grading.errors import UserError
from grading.files import Unreadable, read_plain_file
from grading.intake.archive import MAX_MEMBERS
from grading.intake.arrived import Arrivals, ArrivedFile, Refusal, RefusedFile
from grading.intake.names import has_unseen, is_clutter, refuse_twins
from grading.rebuild.submission import MAX_BYTES


def read_folder(folder: Path) -> Arrivals:
    """The files below a folder, at their time of change. Raises UserError where it is no folder or holds too much."""
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder", "give the folder that has a folder or a file for each student")
    folder, result = folder.resolve(), Arrivals()
    for n_files, item in enumerate(_walk(folder, folder, result.refused)):
        if n_files >= MAX_MEMBERS:
            raise UserError(f"{folder} has more than {MAX_MEMBERS:,} files", "give the folder of one lab's submissions")
        path = Path(item.path).relative_to(folder).as_posix()
        if is_clutter(path):
            continue
        status = item.stat(follow_symlinks=False)
        if has_unseen(path):
            result.refused.append(RefusedFile(path, "its name has characters that are not seen: rename it"))
        elif stat.S_ISLNK(status.st_mode):
            result.refused.append(RefusedFile(path, "it is a link"))
        elif not stat.S_ISREG(status.st_mode):
            result.refused.append(RefusedFile(path, "it is a device or a pipe"))
        else:
            when = datetime.datetime.fromtimestamp(status.st_mtime, datetime.UTC)
            result.entries.append(ArrivedFile(path, status.st_size, when, functools.partial(_read, Path(item.path))))
    return refuse_twins(result)


def _walk(top: Path, folder: Path, refused: list[RefusedFile]) -> Iterator[os.DirEntry]:
    try:
        items = sorted(os.scandir(folder), key=lambda item: item.name)
    except OSError as error:
        refused.append(RefusedFile(folder.relative_to(top).as_posix(), f"it cannot be read: {error.strerror}"))
        return
    for item in items:
        if item.is_dir(follow_symlinks=False):
            yield from _walk(top, Path(item.path), refused)
        else:
            yield item


def _read(path: Path) -> bytes:
    try:
        return read_plain_file(path, MAX_BYTES)
    except (Unreadable, OSError) as error:
        raise Refusal(str(error)) from error
