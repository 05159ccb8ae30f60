"""`new 21_my_lab [--exercise 21-thing]`, `new --exercise 21-other`: write the files of a new lab or exercise."""

from __future__ import annotations

import argparse
from pathlib import Path

from grading.errors import UserError
from grading.scaffold.names import exercise_names, lab_names
from grading.scaffold.write import new_exercise, new_lab
from grading.terminal import say

ROOT = Path(__file__).resolve().parents[2]
FIRST = "first-steps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lab", nargs="?", metavar="21_my_lab", help="the new lab; left out to add to one that stands")
    parser.add_argument("--exercise", metavar="21-thing", help=f"its exercise (of a new lab: NN-{FIRST})")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if not (args.lab or args.exercise):
        raise UserError("nothing to begin", "name a lab (21_my_lab), an exercise (--exercise 21-thing), or both")
    exercise = exercise_names(args.exercise) if args.exercise else None
    if args.lab and not _stands(args.lab):
        lab = lab_names(args.lab)
        written = new_lab(ROOT, lab, exercise or exercise_names(f"{lab.number}-{FIRST}"))
    elif exercise is None or (args.lab and lab_names(args.lab).number != exercise.number):
        raise UserError(f"{args.lab} is there already", "name an exercise of it to add: --exercise NN-its-name")
    else:
        written = new_exercise(ROOT, exercise)
    for path in written:
        say(str(path.relative_to(ROOT)))
    say("now: make notebooks, then make check; docs/authoring.md goes on from here")
    return 0


def _stands(lab: str) -> bool:
    return (ROOT / "solutions" / f"{lab}.py").exists()
