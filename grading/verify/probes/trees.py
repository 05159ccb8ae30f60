"""Were files changed that are not a submission's to change?

Folders of the disposable course may not change at all. Folders that others work in at the same time (this
repository, installed packages, a home) count a change only where the attack's token stands in it, or where a file is
gone or empty.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

SKIPPED = frozenset({"__pycache__", ".git", ".pytest_cache", ".ruff_cache", ".venv", "build"})
MAX_READ_BYTES = 2**20


def digests(paths: Iterable[Path]) -> dict[Path, str]:
    """A digest of every file under these files and folders, by path; links by what they point to."""
    return {path: _digest(path) for path in _files(paths)}


def stamps(paths: Iterable[Path]) -> dict[Path, tuple[int, int, int]]:
    """Size, change time (which only the kernel sets) and inode of every file under these; reads no content."""
    return {path: stamp for path in _files(paths) if (stamp := _stamp(path))}


def changes(before: Mapping[Path, object], after: Mapping[Path, object]) -> list[str]:
    """What is not as it was, one text for each file."""
    gone = [f"{path} is gone" for path in before if path not in after]
    new = [f"{path} is new" for path in after if path not in before]
    return gone + new + [f"{path} was changed" for path in before if path in after and before[path] != after[path]]


def carrying(
    before: Mapping[Path, tuple[int, int, int]], after: Mapping[Path, tuple[int, int, int]], token: str
) -> list[tuple[str, str]]:
    """(text, what holds the token) for changed and new files that carry `token`, and (text, "") for emptied ones."""
    found = [(f"{path} is gone", "") for path in before if path not in after and path.parent.is_dir()]
    for path, stamp in after.items():
        if before.get(path) == stamp:
            continue
        content = f"{path.name} {_start_of(path)}"
        if token in content:
            found.append((f"{path} was written", content))
        elif path in before and before[path][0] and not stamp[0]:
            found.append((f"{path} was emptied", ""))
    return found


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for top in paths:
        if top.is_file() or top.is_symlink():
            yield top
            continue
        for folder, names, files in os.walk(top):
            names[:] = sorted(set(names) - SKIPPED)
            yield from (Path(folder, name) for name in sorted(files) if not name.endswith(".pyc"))


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    if not path.is_file():
        return "no plain file"
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except PermissionError:
        # An attack's own, where the one who grades is not root.
        return f"closed, {path.stat().st_size} bytes"


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size, status.st_ctime_ns, status.st_ino


def _start_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(MAX_READ_BYTES)
            file.seek(max(path.stat().st_size - MAX_READ_BYTES, 0))
            return (head + file.read(MAX_READ_BYTES)).decode(errors="replace")
    except OSError:
        return ""
