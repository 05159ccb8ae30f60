"""How alike right answers to an exercise are that nobody copied: our solution and the unusual right ones of the tests.

Where these are alike already, being alike says nothing about students, and the exercise is left out. Answers that are
edits of another one (patches) do not count. The unusual ones were written to differ, so this measures less likeness
than a class of honest students has.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from grading.demo.examples import examples, solution_of, tests_of
from grading.similar.detector import LEAST_COVERED, compare, fingerprint, given_in
from grading.similar.programs import Program, program_of

ALIKE = 0.7
"""Where two honest answers have as much in common, the exercise is left out."""
MARGIN = 0.1
LEAST = 0.75
"""A pair of students' answers is shown from here on, and from MARGIN above the honest pairs' highest."""


@dataclass(frozen=True)
class Honest:
    """What is known of an exercise: the highest share among `n_pairs` honest pairs, and why it is left out, if it is.

    Honest(highest=0.31, n_pairs=15, left_out=None)
    """

    highest: float
    n_pairs: int
    left_out: str | None

    @property
    def limit(self) -> float:
        """From which share on a pair is shown."""
        return max(LEAST, self.highest + MARGIN)


def honest_likeness(exercise: str, base: Program) -> Honest:
    """Measured on the answers of this checkout. Nothing is run."""
    programs = honest_programs(exercise)
    given = given_in(base)
    prints = [fingerprint(program, given) for program in programs]
    if not prints:
        return Honest(0.0, 0, "there are no honest answers to measure it by")
    if prints[0].covered < LEAST_COVERED:
        return Honest(0.0, 0, "its right answers are too short to tell anything")
    shares = [compare(one, other).share for one, other in itertools.combinations(prints, 2)]
    if not shares:
        return Honest(0.0, 0, "there are no two honest answers to measure it by")
    highest = max(shares)
    alike = f"right answers are necessarily alike: two that nobody copied share {highest:.0%}"
    return Honest(highest, len(shares), alike if highest >= ALIKE else None)


def honest_programs(exercise: str) -> list[Program]:
    """Our solution first, then the right answers that stand on their own; none of an exercise that we do not have."""
    try:
        solution = solution_of(exercise)
    except (TypeError, ValueError, OSError):
        return []
    folder = tests_of(exercise) / "right" / exercise
    own = [item for item in examples("right", exercise) if (folder / f"{item.name}.py").is_file()]
    return [program_of(source) for source in (solution, *(item.source for item in own))]
