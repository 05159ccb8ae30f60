"""A disposable course for one run of the matrix: honest students, every attack as a student, secrets to be found.

Made by the commands that make a real course. Nothing is graded here.
"""

from __future__ import annotations

import contextlib
import io
import json
import secrets
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from nbgrader.api import Gradebook

import grading.hidden.lab00.warm_up
import labkit.oracles.lab00.warm_up
from grading.course import Course
from grading.demo.answers import known, solutions
from grading.gradebook.setup import release, set_up
from grading.gradebook.sources import SOLUTIONS
from grading.verify.attacks import GUARD, Attack, Places, filled
from grading.verify.probes.leftovers import IPC_KEY_BASE

HONEST = ("aaa-first", "mmm-middle", "zzz-last")
THOROUGH = "mmm-middle"
"""The one of them who solves the whole lab; the others hand in what is attacked and one exercise more."""

REPO = SOLUTIONS.parent
COMPANION = {"02": "02-format-table"}
"""An exercise that every attack on this lab answers honestly: it must be graded whatever happens beside it."""


@dataclass(frozen=True)
class ClassroomSubmission:
    """One submission: by which attack (None: an honest one), by which student, and the token it may leave behind.

    solved: the exercises that an honest one has right; it leaves the others blank.
    """

    attack: Attack | None
    lab: str
    student: str
    token: str
    solved: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Classroom:
    """Everything on disk that a run of the matrix needs, under `root`, which nobody else uses.

    canaries: secret texts that no submission may come to know, by what they are.
    """

    root: Path
    course: Course
    handins: tuple[ClassroomSubmission, ...]
    canaries: Mapping[str, str]
    token: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"


def open_classroom(root: Path, attacks: Sequence[Attack], listening: Places) -> Classroom:
    """Set the course up in the empty folder `root`, with everything handed in. Raises UserError like the commands."""
    token = f"etl-attack-{secrets.token_hex(4)}"
    canaries = {
        what: f"canary-{secrets.token_hex(12)}"
        for what in ("the solution", "a classmate's answer", "the environment", "a private key", "the gradebook")
    }
    for name in ("home/.ssh", "tmp"):
        (root / name).mkdir(parents=True)
    (root / "home" / ".ssh" / "id_ed25519").write_text(f"{canaries['a private key']}\n")
    (root / "home" / ".bashrc").write_text("# the grader's own\n")
    with contextlib.redirect_stdout(io.StringIO()):
        numbers = sorted({attack.lab for attack in attacks})
        course = set_up(root / "course", "attacked", labs=numbers)
        labs = [course.lab(number) for number in numbers]
        for lab in labs:
            _hide_in_source(course.source(lab), canaries["the solution"])
        release(course, labs)
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        for student in HONEST:
            gradebook.update_or_create_student(student, email=canaries["the gradebook"])
    handins = []
    for lab in labs:
        attacked = {attack.exercise for attack in attacks if course.lab(attack.lab) == lab}
        canary = canaries["a classmate's answer"]
        handins += [_hand_in_honest(course, lab, student, attacked, canary) for student in HONEST]
    places = {"COURSE": str(course.root), "REPO": str(REPO), "HOME": str(root / "home"), **listening}
    places["GUARD"] = GUARD
    for number, attack in enumerate(attacks):
        own = {"TOKEN": f"{token}-{attack.name}", "IPC_KEY": str(IPC_KEY_BASE + number % 256)}
        handins += [_hand_in(course, attack, student, {**places, **own}) for student in attack.students]
    canaries |= _standing_secrets(course)
    environment = {"HOME": str(root / "home"), "TMPDIR": str(root / "tmp"), "SECRET": canaries["the environment"]}
    # PyTorch makes this folder once an oracle lets an optimizer step, and nobody takes it away.
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(root / "pytorch")
    return Classroom(root, course, tuple(handins), canaries, token, environment)


def _standing_secrets(course: Course) -> dict[str, str]:
    """What is secret in any course: its key, and phrases of the modules that a submission may not read."""
    key = course.key()
    return {
        "the course's key (in hexadecimal)": key.hex(),
        "the course's key": repr(key)[2:-1],
        "our solution": "### BEGIN " + "SOLUTION",
        "the oracles": str(labkit.oracles.lab00.warm_up.__doc__).splitlines()[0],
        "the hidden cases": str(grading.hidden.lab00.warm_up.__doc__).splitlines()[0],
    }


def _hide_in_source(path: Path, canary: str) -> None:
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        begin = "    ### BEGIN SOLUTION"
        cell.source = cell.source.replace(begin, f"{begin}\n    # {canary}")
    nbformat.write(notebook, path)


def _released(course: Course, lab: str) -> NotebookNode:
    return nbformat.read(course.root / "release" / lab / f"{lab}.ipynb", as_version=4)


def _solved(course: Course, lab: str) -> dict[str, str]:
    solved = solutions(nbformat.read(course.source(lab), as_version=4), lab)
    return {
        name: "\n".join(line for line in text.splitlines() if "canary-" not in line) for name, text in solved.items()
    }


def _cell(notebook: NotebookNode, grade_id: str) -> int:
    return [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells].index(grade_id)


def _hand_in_honest(course: Course, lab: str, student: str, attacked: set[str], canary: str) -> ClassroomSubmission:
    notebook, solved = _released(course, lab), _solved(course, lab)
    if student != THOROUGH:
        beside = COMPANION.get(lab[:2]) or next((name for name in solved if name not in attacked), None)
        solved = {name: text for name, text in solved.items() if name in {*attacked, beside}}
    for name, text in solved.items():
        notebook.cells[_cell(notebook, name)].source = f"# {canary}\n{text}"
    _write(course, lab, student, notebook)
    return ClassroomSubmission(None, lab, student, "", frozenset(solved))


def _hand_in(course: Course, attack: Attack, student: str, places: Places) -> ClassroomSubmission:
    lab = course.lab(attack.lab)
    solved = _solved(course, lab)
    right, wrong = solved[attack.exercise], known("wrong", attack.exercise)[0]
    places = {**places, "LAB": lab}
    token = places["TOKEN"]

    def text_of(text: str) -> str:
        return filled(text.replace("@RIGHT@", right).replace("@WRONG@", wrong), places).strip("\n")

    notebook = deepcopy(_released(course, lab))
    if companion := COMPANION.get(attack.lab):
        notebook.cells[_cell(notebook, companion)].source = solved[companion]
    at = _cell(notebook, attack.exercise)
    notebook.cells[at].source = text_of(attack.answer)
    if attack.after:
        notebook.cells.insert(_cell(notebook, f"{attack.exercise}-check") + 1, _added(text_of(attack.after), "after"))
    if attack.before:
        notebook.cells.insert(at, _added(text_of(attack.before), "before"))
    if attack.change:
        attack.change(notebook)
        for cell in notebook.cells:
            cell.source = filled(cell.source, places)
    path = _write(course, lab, student, notebook)
    if attack.folder:
        attack.folder(path.parent, {**places, "RIGHT": right, "WRONG": wrong})
    return ClassroomSubmission(attack, lab, student, token)


def _added(source: str, name: str) -> NotebookNode:
    return new_code_cell(source, id=f"mine-{name}")


def _write(course: Course, lab: str, student: str, notebook: NotebookNode) -> Path:
    path = course.submitted(lab, student)
    path.parent.mkdir(parents=True)
    # Not by nbformat's own writer, which mends what an attack has broken on purpose.
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path
