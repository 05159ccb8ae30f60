"""Read a zip archive that strangers filled: nothing is unpacked to disk, no size in it is believed.

Every member is named or refused first; bytes are read only for the members that are asked for.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from grading.errors import UserError
from grading.intake.arrived import Arrivals, ArrivedFile, Refusal, RefusedFile
from grading.intake.names import is_clutter, most_of, refuse_twins, wrong_with_path
from grading.rebuild.submission import MAX_BYTES

MAX_MEMBERS = 20_000
MAX_DIRECTORY_BYTES = 8 * 2**20
MAX_TOTAL_BYTES = 4 * 2**30
MAX_RATIO = 200
"""Deflate can reach 1032; a notebook full of equal pictures stays below 100."""
RATIO_FREE_BYTES = 2**20
"""A small file may be as compressible as it likes."""

CHUNK_BYTES = 64 * 2**10
PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What the platforms write. An LZMA member may ask for gigabytes before it gives its first byte."""

ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar", ".bz2", ".xz", ".zst")
ENCRYPTED = 0x1 | 0x40 | 0x2000
UTF8_NAME = 0x800
UNIX_TIMES = 0x5455
TROUBLE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OverflowError, RuntimeError, struct.error, OSError)
"""All that zipfile raises over members that lie; NotImplementedError is a RuntimeError."""


@dataclass
class Allowance:
    """What may still be read from one archive."""

    left_bytes: int = MAX_TOTAL_BYTES


class CappedFile:
    """The archive's file, refusing one huge read: zipfile takes in the whole directory at the size it claims."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable, self.close = file.seek, file.tell, file.seekable, file.close

    def read(self, size: int = -1) -> bytes:
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(f"its directory claims {size:,} bytes")
        return self._file.read(size)


@contextlib.contextmanager
def open_archive(path: Path, zone: datetime.tzinfo) -> Iterator[Arrivals]:
    """The members of a zip archive, readable inside the block; local times in it are taken to be in `zone`.

    Raises UserError where the file is no zip archive at all or has too many members.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            archive = stack.enter_context(zipfile.ZipFile(CappedFile(file)))
        except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
            raise UserError(f"{path} cannot be read ({error.strerror})", "give the zip file as downloaded") from error
        except TROUBLE as error:
            raise UserError(f"{path} is not a complete zip archive ({error})", "download it again") from error
        members = archive.infolist()
        if len(members) > MAX_MEMBERS:
            text = f"{path} has {len(members):,} members, more than {MAX_MEMBERS:,}"
            remedy = f"leave out what is {most_of([member.orig_filename for member in members])}"
            raise UserError(text, remedy)
        yield refuse_twins(_arrivals(archive, members, zone))


def _arrivals(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], zone: datetime.tzinfo) -> Arrivals:
    result, allowance = Arrivals(), Allowance()
    for member in members:
        path = _name(member)
        # A directory holds nothing; but where it claims to lie says what kind of archive this is.
        reason = wrong_with_path(path) or (None if path.endswith("/") else _wrong_with_member(member, path))
        if reason:
            result.refused.append(RefusedFile(path, reason))
        elif not path.endswith("/") and not is_clutter(path):
            read = functools.partial(_read, archive, member, allowance)
            result.entries.append(ArrivedFile(path, member.file_size, _time(member, zone), read))
    return result


def _name(member: zipfile.ZipInfo) -> str:
    """The name as written. macOS writes UTF-8 without saying so, which zipfile takes for an IBM character set."""
    name = member.orig_filename
    if not member.flag_bits & UTF8_NAME and not name.isascii():
        with contextlib.suppress(UnicodeError):
            return name.encode("cp437").decode()
    return name


def _wrong_with_member(member: zipfile.ZipInfo, path: str) -> str | None:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "it is a link"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "it is a device or a pipe"
    if member.flag_bits & ENCRYPTED:
        return "it is encrypted"
    if path.lower().endswith(ARCHIVES):
        return "it is an archive inside the archive, which is not opened: ask for the notebook itself"
    if member.compress_type not in PLAIN_METHODS:
        return f"it is compressed by method {member.compress_type}, not stored or deflated"
    return None


def _time(member: zipfile.ZipInfo, zone: datetime.tzinfo) -> datetime.datetime | None:
    """Universal time where the member carries it, else its local time in `zone`; None where neither is a time."""
    with contextlib.suppress(ValueError, OverflowError, OSError, struct.error):
        extra = member.extra
        while len(extra) >= 4:
            kind, size = struct.unpack("<HH", extra[:4])
            if kind == UNIX_TIMES and size >= 5 and extra[4] & 1:
                (seconds,) = struct.unpack("<i", extra[5:9])
                return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
            extra = extra[4 + size :]
    try:
        return datetime.datetime(*member.date_time, tzinfo=zone).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, allowance: Allowance) -> bytes:
    """A member's bytes, counted as they come. Raises Refusal for too many of them, and for a damaged member."""
    chunks, n_bytes = [], 0
    try:
        with archive.open(member) as file:
            while chunk := file.read(CHUNK_BYTES):
                n_bytes += len(chunk)
                allowance.left_bytes -= len(chunk)
                _refuse_bomb(n_bytes, member.compress_size, allowance)
                chunks.append(chunk)
    except TROUBLE as error:
        raise Refusal(f"it is damaged ({error}): ask for a new copy") from error
    if n_bytes != member.file_size:
        raise Refusal(f"it is damaged (it says {member.file_size:,} bytes and has {n_bytes:,}): ask for a new copy")
    return b"".join(chunks)


def _refuse_bomb(n_bytes: int, packed_bytes: int, allowance: Allowance) -> None:
    if n_bytes > MAX_BYTES:
        raise Refusal(f"it has more than {MAX_BYTES:,} bytes: ask the student to clear its outputs and resubmit")
    if n_bytes > RATIO_FREE_BYTES and n_bytes > MAX_RATIO * packed_bytes:
        raise Refusal(f"it unpacks to more than {MAX_RATIO} times its size, as a bomb does: look at the file")
    if allowance.left_bytes < 0:
        raise Refusal(f"the archive has already given {MAX_TOTAL_BYTES:,} bytes: split it")
