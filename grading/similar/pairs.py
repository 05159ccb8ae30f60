"""Compare the answers of a class, exercise by exercise, and keep the pairs that are more alike than honest ones.

Answers of three students or more that are the same to the detector make one group, of which the first is compared with
the others: an answer that went round would make hundreds of pairs. What a pair means is for a person to find out:
nothing here is a verdict.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from grading.similar.detector import LEAST_COVERED, Fingerprint, Likeness, compare, fingerprint, given_in
from grading.similar.honest import Honest, honest_likeness
from grading.similar.programs import Answers, ClassAnswers, Program

LEAST_IN_A_GROUP = 3


@dataclass(frozen=True)
class Pair:
    """Two students whose answers to an exercise are alike. others: how many further ones have the same as each."""

    students: tuple[str, str]
    programs: tuple[Program, Program]
    likeness: Likeness
    others: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Group:
    """Students whose answers are the same but for names, texts, comments and blanks; the answers of the first two."""

    students: tuple[str, ...]
    programs: tuple[Program, Program]


@dataclass(frozen=True)
class Compared:
    """One exercise. too_short: whose answers are; n_pairs: how many pairs of students were compared."""

    exercise: str
    honest: Honest
    groups: tuple[Group, ...] = ()
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
    same = groups_of(long_enough)
    others = {names[0]: len(names) - 1 for names in same}
    later = {name for names in same for name in names[1:]}
    compared = {student: found for student, found in long_enough.items() if student not in later}
    pairs = []
    for (one, print_one), (other, print_other) in itertools.combinations(compared.items(), 2):
        likeness = compare(print_one, print_other)
        if likeness.share >= honest.limit:
            programs = (print_one.program, print_other.program)
            pairs.append(Pair((one, other), programs, likeness, (others.get(one, 0), others.get(other, 0))))
    pairs.sort(key=lambda pair: (-pair.likeness.share, pair.students))
    return Compared(
        answers.exercise,
        honest,
        tuple(Group(names, (prints[names[0]].program, prints[names[1]].program)) for names in same),
        tuple(pairs),
        len(long_enough) * (len(long_enough) - 1) // 2,
        tuple(sorted(set(prints) - set(long_enough))),
    )


def groups_of(prints: Mapping[str, Fingerprint]) -> list[tuple[str, ...]]:
    """The students of each group, by name; the largest group first."""
    found = defaultdict(list)
    for student, each in prints.items():
        found[frozenset(each.prints.hashes)].append(student)
    groups = [tuple(students) for students in found.values() if len(students) >= LEAST_IN_A_GROUP]
    return sorted(groups, key=lambda students: (-len(students), students))
