"""`try 21-thing [FILE] [--draws 50]`: what a student with this answer sees, and on how many hidden draws it passes.

`try 21-thing --known [--draws 5]`: which of the exercise's known answers some draws judge otherwise than their files
say. For the author of an exercise, on answers that the author trusts: nothing is isolated, and no grade is touched.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from grading.demo.examples import example, solution_of
from grading.errors import UserError
from grading.terminal import say
from grading.tryout.cases import CaseSet
from grading.tryout.draws import verdicts
from grading.tryout.known import findings, known_answers
from labkit import exercises
from labkit.check.text import as_text
from labkit.check.verdict import Verdict

DRAWS = 50
DRAWS_OF_KNOWN = 5
"""Where all known answers are tried on each."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exercise", metavar="21-thing", help="an exercise by its id")
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="an answer (default: the solution)")
    parser.add_argument("--known", action="store_true", help="in its place, all answers under tests/wrong and right")
    parser.add_argument(
        "--draws", type=int, metavar="N", help=f"hidden draws (default: {DRAWS}; {DRAWS_OF_KNOWN} with --known)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """1 where the answer fails anywhere, else 0."""
    if args.draws is not None and args.draws < 1:
        raise UserError("hidden cases cannot be tried without a draw", "give --draws 1 or more")
    try:
        name = exercises.find(args.exercise).id
    except exercises.UnknownExercise as error:
        raise UserError(str(error), "a new one is begun by python -m grading new --exercise NN-its-name") from error
    if not args.known:
        return _try_one(name, args.file, args.draws or DRAWS)
    if args.file:
        raise UserError("--known tries answers of its own", f"leave out {args.file}, or --known")
    return _try_known(name, args.draws or DRAWS_OF_KNOWN)


def _try_one(name: str, file: Path | None, n_draws: int) -> int:
    source = _source(name, file)
    try:
        public = CaseSet(name)
        seen = public.verdict(public.runs(source))
        say(f"what a student sees ({len(public.cases)} public cases):", "", *as_text(seen).splitlines(), "")
        first, n_passed = None, 0
        for number, verdict in enumerate(verdicts(name, source, n_draws), 1):
            n_passed += verdict.passed
            if not verdict.passed and first is None:
                first = (number, verdict)
    except Exception as error:
        raise UserError(
            f"{file or 'the solution'}: {type(error).__name__}: {error}",
            "the answer raises that; if it is right, the exercise does",
        ) from error
    say(f"hidden cases: {n_passed} of {n_draws} draws pass", *_shown(first))
    return 0 if seen.passed and n_passed == n_draws else 1


def _try_known(name: str, n_draws: int) -> int:
    n_found = 0
    for found in findings(name, n_draws):
        n_found += 1
        say(f"{found.name}, draw {found.draw}: {found.problem}", "")
        if found.verdict:
            say(*as_text(found.verdict).splitlines(), "")
    n_answers = len(known_answers(name))
    say(f"{n_answers} known answers on {n_draws} draws: {n_found} times judged otherwise than their files say")
    return 1 if n_found else 0


def _source(name: str, file: Path | None) -> str:
    if file is None:
        return solution_of(name)
    try:
        if file.suffix == ".patch":
            return example(file.resolve().parents[1].name, f"{name}/{file.stem}").source
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file} cannot be read, {error.strerror}", "name a file with the answer's cell") from error


def _shown(first: tuple[int, Verdict] | None) -> tuple[str, ...]:
    return () if first is None else (f"the first that fails, draw {first[0]}:", "", *as_text(first[1]).splitlines())
