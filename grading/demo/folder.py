"""The demo's own folder: made anew on every run, and never at the cost of anybody else's files."""

from __future__ import annotations

import shutil
from pathlib import Path

from grading.errors import UserError

MARKER = ".made-by-the-demo"
COURSE, GRADES, PAGE = "course", "grades.csv", "report.html"
OWN = (MARKER, COURSE, GRADES, PAGE)


def claim(folder: Path) -> None:
    """An empty folder with the demo's marker in it. Raises UserError where something else is there."""
    remedy = "choose another one with --out, or remove it yourself"
    try:
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise UserError(f"{folder} is no plain folder", remedy)
        names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
        if names and MARKER not in names:
            raise UserError(f"{folder} was not made by the demo", remedy)
        if strange := [name for name in names if not _is_own(name)]:
            raise UserError(f"{folder} holds something that the demo did not make ({strange[0]})", remedy)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARKER).write_text("This folder is emptied by every run of the demo.\n", encoding="utf-8")
        for name in names:
            if name != MARKER:
                _remove(folder / name)
    except OSError as error:
        raise UserError(f"{error.filename or folder} cannot be written ({error.strerror})", remedy) from error


def _is_own(name: str) -> bool:
    # A file or folder that was being made when an earlier demo was killed has a dot in front and more behind.
    return name in OWN or name.startswith(tuple(f".{own}-" for own in (COURSE, GRADES, PAGE)))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
