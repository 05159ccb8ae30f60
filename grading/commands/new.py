"""`new 21_my_lab [--exercise 21-thing]`, `new --exercise 21-other`: write the files of a new lab or exercise."""

from __future__ import annotations

import argparse
from pathlib import Path

from grading import own_labs
from grading.errors import UserError
from grading.scaffold.names import exercise_names, lab_names
from grading.scaffold.write import new_exercise, new_lab
from grading.terminal import say

FIRST = "first-steps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lab", nargs="?", metavar="21_my_lab", help="the new lab; left out to add to one that stands")
    parser.add_argument("--exercise", metavar="21-thing", help=f"its exercise (of a new lab: NN-{FIRST})")
    parser.add_argument(
        "--root",
        type=Path,
        default=own_labs.REPOSITORY,
        metavar="FOLDER",
        help="where it is written: a folder of labs of your own, outside this checkout (default: this checkout)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if not (args.lab or args.exercise):
        raise UserError("nothing to begin", "name a lab (21_my_lab), an exercise (--exercise 21-thing), or both")
    exercise = exercise_names(args.exercise) if args.exercise else None
    root = args.root.expanduser().resolve()
    if args.lab and not (root / "solutions" / f"{args.lab}.py").exists():
        lab = lab_names(args.lab)
        _require_free(lab.number)
        written = new_lab(root, lab, exercise or exercise_names(f"{lab.number}-{FIRST}"))
    elif exercise is None or (args.lab and lab_names(args.lab).number != exercise.number):
        raise UserError(f"{args.lab} is there already", "name an exercise of it to add: --exercise NN-its-name")
    else:
        written = new_exercise(root, exercise)
    for path in written:
        say(str(path.relative_to(root)))
    is_ours = root == own_labs.REPOSITORY
    steps = "make notebooks, then make check" if is_ours else f"python -m grading build --root {root}"
    say(f"now: {steps}; docs/authoring.md goes on from here")
    return 0


def _require_free(number: str) -> None:
    """Raises UserError where a lab of the repository, or of a folder in use, has this number."""
    for path in own_labs.sources():
        if path.name[:2] == number:
            raise UserError(f"{path.stem} has this number already", "choose one that is free")
