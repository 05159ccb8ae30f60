"""Files: read one that a student may have laid out, and write one whole or not at all.

A file is read if it is a plain one of bounded size, never through a link, never waiting. Whose fault it is when it
cannot be read is told apart here; what is in the file is not looked at.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

from grading.errors import UserError

_OF_THE_FILE = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENXIO,
    errno.ENAMETOOLONG,
    errno.EACCES,
    errno.EPERM,
)
"""What is wrong with the file. Any other error (no descriptors left, a disk that fails) is this machine's."""
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY
"""To pass through it, which needs no right to list it."""


class Unreadable(Exception):
    """The file cannot be taken as it is; the message says why and what to ask the student for."""


def read_plain_file(
    path: Path, most_bytes: int, if_larger: str = "clear its outputs and resubmit", top: Path | None = None
) -> bytes:
    """A plain file's bytes. Below the folder `top`, as a rule two above the file's own, no link is followed.

    Raises Unreadable for links (one could lead to the solution, or to a classmate's answers), for other kinds of file,
    for larger ones (with the advice `if_larger`) and for missing ones; OSError where this machine is at fault.
    """
    path = path.absolute()
    top = top or [path, *path.parents][:4][-1]
    try:
        with _open_below(top, path) as file:
            # One more than allowed tells a file that is too large, even while it grows.
            data = file.read(most_bytes + 1)
    except OSError as error:
        if error.errno not in _OF_THE_FILE:
            raise
        if _has_link(top, path):
            raise Unreadable(f"{path.name} is a link or lies behind one: ask for the file itself") from error
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}") from error
    if len(data) > most_bytes:
        raise Unreadable(f"{path.name} has more than {most_bytes:,} bytes: {if_larger}")
    return data


def open_if_plain(path: Path) -> BinaryIO | None:
    """Open what is a plain file and may be read; None for everything else. Raises OSError where this machine fails."""
    try:
        return open_plain_file(path)
    except Unreadable:
        return None
    except OSError as error:
        if error.errno not in _OF_THE_FILE:
            raise
        return None


def _open_below(top: Path, path: Path) -> BinaryIO:
    """Open a plain file by one folder after the other, so that no folder can become a link after it was looked at."""
    folder = os.open(top, _FOLDER)
    try:
        for part in path.relative_to(top).parts[:-1]:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return open_plain_file(Path(path.name), folder)
    finally:
        os.close(folder)


def _has_link(top: Path, path: Path) -> bool:
    return any(part.is_symlink() for part in (path, *path.parents) if part != top and part.is_relative_to(top))


def open_plain_file(path: Path, folder: int | None = None) -> BinaryIO:
    """Open a plain file to read it, in the folder of this descriptor if one is given.

    Raises Unreadable for another kind of file, and OSError, for a link and a folder too.
    """
    file = open(path, "rb", opener=functools.partial(_open, folder=folder))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise Unreadable(f"{path.name} is not an ordinary file: ask for the file itself")
    return file


def _open(path: str, flags: int, folder: int | None) -> int:
    # Not blocking, because a named pipe would keep us waiting for somebody to write into it.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)


def write_whole(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
    """Write a file so that it is there whole or not at all, whatever happens in between. Raises OSError.

    durable: it has reached the disk when this returns, and would survive a power cut.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise


def write_output(path: Path, text: str) -> None:
    """Replace a file that somebody asked for by this text in UTF-8, readable by its owner alone.

    Raises UserError; then what was there before is still there.
    """
    try:
        # A folder's name may hold bytes that are no text; they are spelled out.
        write_whole(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror})", "choose another place with --out") from error
