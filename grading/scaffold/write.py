"""Writes the files of a new lab or exercise, and the two lines by which the course knows of them.

In a folder that is no checkout of the course, a new lab has a `lab.toml` in place of a line in `labkit/labs.py`.

All texts are made before the first is written; where a file is in the way, or a list is not as expected, none is.
"""

from __future__ import annotations

from pathlib import Path

from grading.errors import UserError
from grading.scaffold.names import ExerciseNames, LabNames

TEMPLATES = Path(__file__).parent / "templates"
HALVES = {
    "labkit/exercises": "what is asked, given and run",
    "labkit/oracles": "what is true of a right answer",
    "grading/hidden": "hidden cases",
}
LABS, LABS_END = Path("labkit", "labs.py"), "\n)\n\n\ndef find_lab("
ANNOUNCES = "# %% [markdown]\n# ## What you wrote"
MINUTES = 30


def new_lab(root: Path, lab: LabNames, first: ExerciseNames) -> list[Path]:
    """Write lab `lab` with its first exercise below `root`, the repository or a folder of labs of one's own; returns
    what was written or changed.

    Raises UserError where the number is taken or a file is in the way.
    """
    if lab.number != first.number:
        raise UserError(f"{first.id} is no exercise of lab {lab.number}", f"name it {lab.number}-{first.slug}")
    fields = lab.fields()
    taken = sorted((root / "solutions").glob(f"{lab.number}_*.py"))
    is_own = not (root / LABS).is_file()
    declared = "" if is_own else _read(root / LABS)
    if taken or f'Lab("{lab.number}"' in declared or f'        "{lab.number}",\n' in declared:
        name = taken[0].stem if taken else f"lab {lab.number} of {LABS}"
        raise UserError(f"{name} has this number already", "choose one that is free")
    source = _rendered("lab/solution", fields)
    texts = {root / "solutions" / f"{lab.stem}.py": _with(source, ANNOUNCES, _section(first), Path(lab.stem))}
    if is_own:
        lab_toml = root / "labkit" / "exercises" / f"lab{lab.number}" / "lab.toml"
        texts[lab_toml] = _rendered("lab/lab", fields | {"minutes": str(MINUTES)})
    else:
        row = f'    Lab("{lab.number}", "{lab.title}", "end", {MINUTES}),'
        texts[root / LABS] = _with(declared, LABS_END, f"\n{row}", LABS)
    for room, half in HALVES.items():
        text = _rendered("lab/half", fields | {"half": half})
        order = f'\nORDER = ("{first.slug}",)\n' if room == "labkit/exercises" else ""
        texts[root / room / f"lab{lab.number}" / "__init__.py"] = text + order
    return _write(texts | _exercise_files(root, first), may_exist={root / LABS})


def new_exercise(root: Path, exercise: ExerciseNames) -> list[Path]:
    """Write an exercise behind the others of its lab; returns what was written or changed.

    Raises UserError where the lab is not there, where a file is in the way, or where a list cannot be added to.
    """
    sources = sorted((root / "solutions").glob(f"{exercise.number}_*.py"))
    if not sources:
        raise UserError(
            f"there is no lab {exercise.number}", f"begin it: python -m grading new {exercise.number}_its_name"
        )
    order = root / "labkit" / "exercises" / f"lab{exercise.number}" / "__init__.py"
    declared = _read(order)
    if f'"{exercise.slug}"' in declared:
        raise UserError(f"{exercise.id} is in {order.relative_to(root)} already", "choose another name")
    source = _read(sources[0])
    section = _section(exercise)
    if "[[stop]]" not in source:
        section = "# %% [markdown]\n# [[stop]]\n\n" + section
    place = ANNOUNCES if ANNOUNCES in source else _last_heading(source, sources[0])
    texts = {
        order: _with_slug(declared, exercise.slug, order),
        sources[0]: _with(source, place, section, sources[0]),
    }
    return _write(texts | _exercise_files(root, exercise), may_exist={order, sources[0]})


def _exercise_files(root: Path, exercise: ExerciseNames) -> dict[Path, str]:
    fields, lab, module = exercise.fields(), f"lab{exercise.number}", f"{exercise.module}.py"
    tests = root / "tests"
    return {
        root / "labkit" / "exercises" / lab / module: _rendered("exercise/exercise", fields),
        root / "labkit" / "oracles" / lab / module: _rendered("exercise/oracle", fields),
        root / "grading" / "hidden" / lab / module: _rendered("exercise/hidden", fields),
        tests / "wrong" / exercise.id / "forgets_to_square.py": _rendered("exercise/wrong_sum", fields),
        tests / "wrong" / exercise.id / "adds_up_everything.py": _rendered("exercise/wrong_shape", fields),
        tests / "right" / exercise.id / "one_product.py": _rendered("exercise/right", fields),
    }


def _section(exercise: ExerciseNames) -> str:
    return _rendered("exercise/section", exercise.fields())


def _rendered(template: str, fields: dict[str, str]) -> str:
    text = (TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")
    for name, value in fields.items():
        text = text.replace(f"<<{name}>>", value)
    return text


def _with(text: str, before: str, added: str, path: Path) -> str:
    """The text with something before the last place where `before` stands."""
    if before not in text:
        raise UserError(f"{path} has no place for it", f"there should be {before.strip().splitlines()[0]!r}")
    at = text.rindex(before)
    return text[:at] + added + text[at:]


def _last_heading(source: str, path: Path) -> str:
    """The lab's closing section, from its heading on: what comes before it is exercises."""
    at = source.rfind("# %% [markdown]\n# ## ", 0, max(source.rfind('progress("'), 0))
    if at < 0:
        raise UserError(f"{path} has no place for it", "there should be a heading before the cell with progress(...)")
    return source[at:]


def _with_slug(declared: str, slug: str, path: Path) -> str:
    """The list with a slug behind the others, on one line or on lines of their own."""
    added = f'    "{slug}",\n' if "\n)" in declared else f', "{slug}"'
    return _with(declared, ")", added, path).replace(",, ", ", ")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be read, {error.strerror}", "run this from a full checkout") from error


def _write(texts: dict[Path, str], may_exist: set[Path]) -> list[Path]:
    """Every file, or none where one is in the way."""
    for path in texts:
        if path.exists() and path not in may_exist:
            raise UserError(f"{path} is there already", "choose another name, or move it away")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)
