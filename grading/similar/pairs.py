"""Compare the answers of a class, exercise by exercise, and keep the pairs that are more alike than honest ones.

What a pair means is for a person to find out: nothing here is a verdict.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from grading.similar.detector import LEAST_COVERED, Likeness, compare, fingerprint, given_in
from grading.similar.honest import Honest, honest_likeness
from grading.similar.programs import Answers, ClassAnswers, Program


@dataclass(frozen=True)
class Pair:
    """Two students whose answers to an exercise are alike."""

    students: tuple[str, str]
    programs: tuple[Program, Program]
    likeness: Likeness


@dataclass(frozen=True)
class Compared:
    """One exercise. too_short: whose answers are; n_pairs: how many pairs were compared."""

    exercise: str
    honest: Honest
    pairs: tuple[Pair, ...] = ()
    n_pairs: int = 0
    too_short: tuple[str, ...] = ()


def compare_class(found: ClassAnswers) -> list[Compared]:
    """Every exercise of the lab, those that are left out as well. The most alike pairs stand first."""
    return [compare_answers(answers) for answers in found.exercises]


def compare_answers(answers: Answers) -> Compared:
    honest = honest_likeness(answers.exercise, answers.base)
    if honest.left_out:
        return Compared(answers.exercise, honest)
    given = given_in(answers.base)
    prints = {student: fingerprint(program, given) for student, program in sorted(answers.by_student.items())}
    long_enough = {student: found for student, found in prints.items() if found.covered >= LEAST_COVERED}
    pairs = []
    for (one, print_one), (other, print_other) in itertools.combinations(long_enough.items(), 2):
        likeness = compare(print_one, print_other)
        if likeness.share >= honest.limit:
            pairs.append(Pair((one, other), (print_one.program, print_other.program), likeness))
    pairs.sort(key=lambda pair: (-pair.likeness.share, pair.students))
    n_pairs = len(long_enough) * (len(long_enough) - 1) // 2
    return Compared(answers.exercise, honest, tuple(pairs), n_pairs, tuple(sorted(set(prints) - set(long_enough))))
