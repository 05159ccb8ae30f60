"""What is left where another submission could find it: shared folders, System V objects, keyrings, temporary files.

In places that other programs use too, only what carries the attacks' token counts.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/run"), Path("/dev/mqueue"))
IPC_KEY_BASE = 0x45544C00
"""Attacks use the 256 keys from here on."""

IPC_TABLES = ("shm", "sem", "msg")


def left_over(token: str, own: tuple[Path, ...]) -> Iterator[str]:
    """One text for each thing that carries `token`; `own` are folders of the harness, which do not count."""
    for folder in SHARED:
        yield from (f"left {path}" for path in _named(folder, token, own))
    yield from _ipc()
    with contextlib.suppress(OSError):
        lines = Path("/proc/keys").read_text().splitlines()
        yield from (f"left a key: {line.strip()}" for line in lines if token in line)


def left_in(folder: Path) -> Iterator[str]:
    """One text for each entry of a folder that should be empty by now: the grader's own temporary files."""
    yield from (f"left {path}" for path in sorted(folder.iterdir()))


def _named(folder: Path, token: str, own: tuple[Path, ...]) -> Iterator[Path]:
    """Two levels deep, which is where a submission could put something that another one knows to look for."""
    for top, names, files in os.walk(folder):
        here = Path(top)
        if here in own or len(here.parts) > len(folder.parts) + 1:
            names.clear()
            continue
        yield from (here / name for name in (*names, *files) if token in name)


def _ipc() -> Iterator[str]:
    for table in IPC_TABLES:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/sysvipc/{table}").read_text().splitlines()[1:]:
                key = int(line.split()[0]) & 0xFFFFFFFF
                if IPC_KEY_BASE <= key < IPC_KEY_BASE + 256:
                    yield f"left a System V object ({table}, key {key - IPC_KEY_BASE})"
