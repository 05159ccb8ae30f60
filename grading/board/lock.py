"""Which of the course's lock files the installed versions are those of.

Lock files stand in the checkout (`make lock`). Nothing is installed here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import grading
from grading.supervisor.packages import ABSENT

LOCKS = Path(grading.__file__).resolve().parent.parent / ".make" / "locks"
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


def lock_in_words(versions: Mapping[str, str], folder: Path = LOCKS) -> str:
    """ "as the lock file cpu.txt has them (SHA-256 9c1e2b0f88d1)", or what differs from the nearest lock file."""
    build = "cpu" if versions.get("torch", "").endswith("+cpu") else "cuda"
    path = folder / f"{build}.txt"
    try:
        text = path.read_bytes()
    except OSError:
        return f"there is no lock file {path.name} to compare these with"
    locked = {name.lower(): version for name, version in _PINNED.findall(text.decode())}
    others = [
        f"{name} {version} for {locked[name.lower()]}"
        for name, version in versions.items()
        if name.lower() in locked and version != ABSENT and version.split("+")[0] != locked[name.lower()]
    ]
    if others:
        return f"unlike the lock file {path.name}: {', '.join(others)}"
    return f"as the lock file {path.name} has them (SHA-256 {hashlib.sha256(text).hexdigest()[:12]})"
