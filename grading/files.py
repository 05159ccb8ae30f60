"""Read a file that a student may have laid out: a plain one of bounded size, never through a link, never waiting.

Whose fault it is when it cannot be read is told apart here; what is in the file is not looked at.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

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


class Unreadable(Exception):
    """The file cannot be taken as it is; the message says why and what to ask the student for."""


def read_plain_file(path: Path, most_bytes: int, if_larger: str = "clear its outputs and resubmit") -> bytes:
    """A plain file's bytes.

    Raises Unreadable for links (one could lead to the solution, or to a classmate's answers), for other kinds of file,
    for larger ones (with the advice `if_larger`) and for missing ones; OSError where this machine is at fault.
    """
    try:
        if any(part.is_symlink() for part in (path, *list(path.parents)[:2])):
            raise Unreadable(f"{path.name} is a link or lies behind one: ask for the file itself")
        with open(path, "rb", opener=_open) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unreadable(f"{path.name} is no ordinary file: ask for the file itself")
            # One more than allowed tells a file that is too large, even while it grows.
            data = file.read(most_bytes + 1)
    except OSError as error:
        if error.errno not in _OF_THE_FILE:
            raise
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}") from error
    if len(data) > most_bytes:
        raise Unreadable(f"{path.name} has more than {most_bytes:,} bytes: {if_larger}")
    return data


def _open(path: str, flags: int) -> int:
    # Not blocking, because a named pipe would keep us waiting for somebody to write into it.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
