"""What stands in `notebooks/` against what should: which files are stale, missing or extra, and writing them.

A file is only touched when its bytes change, and then it is replaced whole. Nothing is ever deleted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Difference:
    """A file that is not as it should be."""

    path: Path
    state: Literal["stale", "missing", "extra"]


def differences(wanted: dict[Path, str]) -> list[Difference]:
    """Which of the wanted files are missing or hold something else."""
    found = []
    for path, text in wanted.items():
        if not path.exists():
            found.append(Difference(path, "missing"))
        elif path.read_bytes() != text.encode():
            found.append(Difference(path, "stale"))
    return found


def extras(folder: Path, wanted: dict[Path, str]) -> list[Difference]:
    """The notebooks in the folder that no source makes."""
    return [Difference(path, "extra") for path in sorted(folder.glob("*.ipynb")) if path not in wanted]


def write(wanted: dict[Path, str]) -> list[Path]:
    """Writes what differs; returns what was written."""
    changed = [difference.path for difference in differences(wanted)]
    for path in changed:
        replace(path, wanted[path])
    return changed


def replace(path: Path, text: str) -> None:
    """The whole file or, when that fails, the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(text.encode())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
