"""Labs that are not in this repository: folders laid out as it is, which a course or a command names.

    my-labs/solutions/21_my_lab.py                     the text and the answers
    my-labs/labkit/exercises/lab21/, oracles/lab21/    what a check needs; the first has a `lab.toml`
    my-labs/grading/hidden/lab21/                      the cases of the grade
    my-labs/tests/wrong/, tests/right/                 answers that are known

`use` makes Python find them beside the repository's own, in this process and, by LABS_OWN in their environment, in
those that it starts. Nothing is copied, and no lab is looked at before it is asked for. Students' machines need none of
this: `bundle` puts the labs where theirs are.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from pathlib import Path

from grading.errors import UserError
from labkit import labs

VARIABLE = "LABS_OWN"
REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("labkit.exercises", "labkit.oracles", "labkit.material", "grading.hidden")
"""Where a lab's modules are looked for; each is a folder of the same path in a folder of own labs."""


def folders() -> tuple[Path, ...]:
    """Those that are in use, as absolute paths."""
    return tuple(map(Path, filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))))


def use(wanted: Iterable[Path | str]) -> None:
    """Use the labs of these folders from here on. Raises UserError for what is no such folder."""
    found = list(folders())
    for folder in map(Path, wanted):
        folder = folder.expanduser().resolve()
        if folder not in found:
            _look_at(folder)
            found.append(folder)
    if found:
        os.environ[VARIABLE] = os.pathsep.join(map(str, found))
        _widen(found)


def use_those_of_the_environment() -> None:
    """What a process does that was started by one that uses some, or by a person who set LABS_OWN."""
    if named := folders():
        os.environ.pop(VARIABLE)
        use(named)


def sources() -> list[Path]:
    """The sources of all labs, the repository's and those in use, by number."""
    everywhere = (REPOSITORY, *folders())
    found = [path for root in everywhere for path in (root / "solutions").glob("[0-9][0-9]_*.py")]
    return sorted(found, key=lambda path: path.name)


def root_of(lab: str) -> Path:
    """The folder that has lab "21": one of those in use, else the repository."""
    return next((folder for folder in folders() if any((folder / "solutions").glob(f"{lab}_*.py"))), REPOSITORY)


def _look_at(folder: Path) -> None:
    """Raises UserError where no lab is there, or one that the repository has."""
    found = sorted((folder / "solutions").glob("[0-9][0-9]_*.py"))
    if not found:
        raise UserError(f"{folder} has no labs", f"begin one: python -m grading new 21_my_lab --root {folder}")
    taken = {path.name[:2]: path for path in sources()}
    for path in found:
        if other := taken.get(path.name[:2]):
            raise UserError(f"{path} has the number of {other}", "rename one of them: a number stands for one lab")


def _widen(wanted: list[Path]) -> None:
    for name in PACKAGES:
        path = importlib.import_module(name).__path__
        path += [part for folder in wanted if (part := str(folder / name.replace(".", "/"))) not in path]
    labs.FOLDERS[1:] = [folder / "labkit" / "exercises" for folder in wanted]
    importlib.invalidate_caches()
