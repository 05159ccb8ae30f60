"""The answers under `tests/` that are known to be wrong or right: `FOLDER/NN-slug/what_it_does`, `.py` or `.patch`.

The first line of a wrong one is `# hint: …`, a piece of the hint that the student must read; that of a right one may be
a comment on what is unusual about it. A patch says in its second line what it changes, `# base: solution`, or
`# base: right/name` or `wrong/name`, an answer of the same exercise. None of these lines is part of the answer. Nothing
is run here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from grading import own_labs
from grading.demo.patches import PatchError, hunks_of, patched

TESTS = Path(__file__).resolve().parents[2] / "tests"
SOLUTIONS = TESTS.parent / "solutions"
BASE_WANTED = "line 2 must be `# base: solution` or `# base: right/NAME` or `wrong/NAME` of a NAME.py"


@dataclass(frozen=True)
class Example:
    """One known answer, such as Example("02-sums", "sorted_by_value", "def …", "by size and not by value").

    source: the text of the answer's cell. hint: a part of the hint that it must get, and empty where it is right.
    """

    exercise: str
    name: str
    source: str
    hint: str = ""


def tests_of(exercise: str) -> Path:
    """The folder `tests` that has the answers to this exercise: the repository's, or that of a lab of one's own."""
    root = own_labs.root_of(exercise[:2])
    return TESTS if root == own_labs.REPOSITORY else root / "tests"


def examples(folder: str, exercise: str) -> tuple[Example, ...]:
    """Those of one exercise in "wrong" or "right", by name."""
    return tuple(map(_read, paths(folder, exercise)))


def paths(folder: str, exercise: str) -> tuple[Path, ...]:
    """Their files, in the same order."""
    found = sorted((tests_of(exercise) / folder / exercise).glob("*.p*"), key=lambda path: path.stem)
    return tuple(path for path in found if path.suffix in (".py", ".patch"))


def example(folder: str, path: str) -> Example:
    """One of them: example("wrong", "02-sums/sorted_by_value"). Raises FileNotFoundError where there is none."""
    whole = tests_of(path) / folder / f"{path}.py"
    patch = whole.with_suffix(".patch")
    return _read(patch if patch.exists() else whole)


def cell_of(lab: str, grade_id: str) -> str:
    """A cell of the course source by its id, `cell_of("02", "02-sums")`: the only place where a solution stands."""
    (source,) = (own_labs.root_of(lab) / SOLUTIONS.name).glob(f"{lab}_*.py")
    pattern = rf'# %%[^\n]*"grade_id": "{grade_id}"[^\n]*\n(.*?)(?=\n# %%|\Z)'
    return re.search(pattern, source.read_text(encoding="utf-8"), re.DOTALL)[1]


def solution_of(exercise: str) -> str:
    """The solution of an exercise as a student would type it, without the lines that mark it as one."""
    lines = cell_of(exercise[:2], exercise).strip("\n").splitlines()
    return "\n".join(line for line in lines if not line.strip().startswith(("### ", "// ### "))) + "\n"


def _read(path: Path) -> Example:
    """Raises PatchError, or ValueError where the first line is not as it should be; both name the file."""
    exercise, first, _, rest = path.parent.name, *path.read_text(encoding="utf-8").partition("\n")
    is_wrong = path.parents[1].name == "wrong"
    hint = first.removeprefix("# hint: ").strip()
    if is_wrong and not (first.startswith("# hint: ") and hint):
        raise ValueError(f"{path}: the first line must be `# hint: …`, a part of the hint that this answer gets")
    if path.suffix == ".patch":
        rest = _patched(path, rest)
    elif not first.startswith("#"):
        rest = f"{first}\n{rest}"
    return Example(exercise, path.stem, rest, hint if is_wrong else "")


def _patched(path: Path, rest: str) -> str:
    """The answer that a patch describes, without its first line."""
    second, _, changes = rest.partition("\n")
    if not second.startswith("# base: "):
        raise PatchError(f"{path}: {BASE_WANTED}, and is {second!r}")
    base = second.removeprefix("# base: ")
    called = base if base == "solution" else f"{base}.py"
    try:
        text = solution_of(path.parent.name) if base == "solution" else _whole(path, base)
        return patched(text, hunks_of(changes, first=3), called=f"the {called}" if base == "solution" else called)
    except PatchError as error:
        raise PatchError(f"{path}: {error}") from None


def _whole(path: Path, base: str) -> str:
    """The answer "right/name" or "wrong/name" of the same exercise, which is no patch itself."""
    folder, _, name = base.partition("/")
    found = path.parents[2] / folder / path.parent.name / f"{name}.py"
    if not found.is_file():
        raise PatchError(f"{BASE_WANTED}; there is no {base}.py")
    return _read(found).source
