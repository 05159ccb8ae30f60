"""Read the attacks of tests/attacks/: one small Python file each, with a docstring that says what it tries.

A file declares some of these names; all of them have a default.

    ROW       the number of its kind, which its file's name begins with, or None for one of no such kind
    BEFORE    a code cell in front of the answer
    ANSWER    the answer cell's text; the default is a wrong answer, so that points can only come from the attack
    AFTER     a code cell behind the check
    change    a function of the notebook, called when the cells are in it
    folder    a function of the submission's folder and of the places below, called when the notebook is in it
    EXERCISE  which exercise is attacked
    EARNS     the share of that exercise's points which it may earn at most
    LEAST     the share which it must earn, for what is odd but honest
    OUTCOMES  how it may end: a verdict's outcome, or "unreadable"
    DAMAGE    the probes that it is after, which are charged to it where the damage has no name on it
    WITHIN_S  seconds of wall time that it may take in all
    HARMLESS  it harms no machine even where nothing holds it, so it may run without isolation
    STOCK     it says something about stock nbgrader, and a sandbox of processes, mounts and network can hold it
    TWICE     handed in by two students, one early and one late: what the first leaves, the second looks for
    STUDENT   the student's name, where the name is the attack

The texts may hold @PLACES@ (see `Places`), among them the right and the wrong answer. Nothing is run here.
"""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType

from nbformat import NotebookNode

from grading.errors import UserError

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "attacks"
MARK = "!breach!"
"""What an attack prints when it reached what it should not have."""

GUARD = f"""
import os
if os.getuid() == 0 and os.readlink("/proc/self/ns/mnt") == "{os.readlink("/proc/self/ns/mnt")}":
    raise SystemExit("{MARK} it is root on the host, and could do anything")
if os.getuid() == 0 and os.readlink("/proc/self/ns/pid") == "{os.readlink("/proc/self/ns/pid")}":
    raise SystemExit("{MARK} it is root among the host's processes, and could kill them all")
"""
NEVER_ON_STOCK = frozenset({16, 17, 21, 22, 23, 25})
NOT_YET = MappingProxyType(
    {
        "35, CUDA events": "needs a GPU in the machine that grades",
        "37, side streams": "needs a GPU in the machine that grades",
    }
)
"""Kinds that cannot be tried yet, and why."""

Places = dict[str, str]
"""What stands for @NAME@ in an attack's texts.

COURSE, REPO, HOME: the folders of the course, of this repository, and of the user who grades. LAB: the lab's name.
TOKEN: a word that belongs to this attack alone. UDP, TCP, SOCKET, ABSTRACT: where somebody listens on the host.
IPC_KEY: a key for System V objects. RIGHT, WRONG: answers. GUARD: code for attacks that could ruin the machine: where
nothing holds it, it says so and stops instead.
"""


@dataclass(frozen=True)
class Attack:
    """One file of tests/attacks/; the fields are explained above."""

    name: str
    tries: str
    row: int | None = None
    before: str = ""
    answer: str = "@WRONG@"
    after: str = ""
    change: Callable[[NotebookNode], None] | None = None
    folder: Callable[[Path, Places], None] | None = None
    exercise: str = "00-warm-up"
    earns: float = 0.0
    least: float = 0.0
    outcomes: tuple[str, ...] = ("failed", "limit", "suspected")
    damage: tuple[str, ...] = ()
    within_s: float = 45.0
    harmless: bool = False
    stock: bool = True
    twice: bool = False
    student: str | None = None

    @property
    def lab(self) -> str:
        """The lab's number."""
        return self.exercise[:2]

    @property
    def on_stock(self) -> bool:
        return self.stock and self.row not in NEVER_ON_STOCK

    @property
    def students(self) -> tuple[str, ...]:
        """In the order of a class's names, the first half of a pair stands well before the second."""
        first = self.student or f"b-{self.name}"
        return (first, f"y-{self.name}") if self.twice else (first,)


_FUNCTIONS = ("change", "folder")
_NAMES = {
    field.name if field.name in _FUNCTIONS else field.name.upper(): field.name
    for field in fields(Attack)
    if field.name not in ("name", "tries")
}


def load(folder: Path = FOLDER) -> list[Attack]:
    """All attacks in the order of their names. Raises UserError where a file is not as it should be."""
    paths = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    if not paths:
        raise UserError(f"{folder} has no attacks", "run this from a full checkout")
    return [_read(path) for path in paths]


def _read(path: Path) -> Attack:
    found = runpy.run_path(str(path))
    tries = (found.get("__doc__") or "").strip()
    if not tries:
        raise UserError(f"{path} does not say what it tries", "give it a docstring")
    if path.stem[:2].isdigit() and "ROW" not in found:
        raise UserError(f"{path} has a number and no ROW", f"declare ROW = {int(path.stem[:2])}, or name it x_...")
    strange = [name for name in found if name.isupper() and name not in _NAMES]
    if strange:
        raise UserError(f"{path} declares {strange[0]}, which means nothing", f"known are: {', '.join(_NAMES)}")
    declared = {_NAMES[name]: value for name, value in found.items() if name in _NAMES}
    return Attack(**{**declared, "name": path.stem, "tries": tries})


def filled(text: str, places: Places) -> str:
    """The text with every @NAME@ of the places replaced."""
    for name, value in places.items():
        text = text.replace(f"@{name}@", value)
    return text
