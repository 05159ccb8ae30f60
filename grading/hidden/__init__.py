"""Hidden cases: drawn from a secret, so that nobody can prepare for them and everybody can reproduce them.

One module an exercise declares which cases it may draw, and the expectation where no library can answer (our own
solution then). The secret itself is the course's and is kept by the supervisor.
"""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from labkit.exercises import declared
from labkit.spec import Case, CaseRun, Tree


@dataclass(frozen=True)
class Hidden:
    """The hidden cases of an exercise.

        Hidden("12-softmax", lambda rng: (Rows(rng.randrange(2, 6), 128), Rows(1, rng.randrange(65, 79))))

    cases: draws them from a generator, of the same Case type as the public ones.
    expect: run -> tree, in place of the oracle's where that one cannot answer for hidden cases.
    memory_cases: draws further cases, so large that a breach of a memory budget stands out in what the whole process
    takes (tens of MiB beyond it); they run last, and the peak is read from outside.
    """

    id: str
    cases: Callable[[random.Random], tuple[Case, ...]]
    expect: Callable[[CaseRun], Tree] | None = None
    memory_cases: Callable[[random.Random], tuple[Case, ...]] = lambda rng: ()


T = TypeVar("T")
TRIES = 20_000
"""Draws before a case that tells mistakes apart counts as one that does not exist; the rarest takes 200 as a rule."""


def drawn(draw: Callable[[], T], tells: Callable[[T], bool]) -> T:
    """The first of these draws that tells mistakes apart. Raises RuntimeError where none does, rather than go on."""
    for _ in range(TRIES):
        if tells(found := draw()):
            return found
    raise RuntimeError(f"none of {TRIES:,} draws tells what it has to: {tells.__qualname__} in {tells.__module__}")


@dataclass(frozen=True)
class Secret:
    """Where one attempt's hidden cases come from: new for each student, exercise and attempt, and reproducible."""

    course_key: bytes
    lab: str
    student: str
    attempt: str

    def draw(self, exercise_id: str, what: str = "") -> random.Random:
        """A generator for one purpose of one exercise: its cases, or the inputs of its n-th case."""
        parts = (self.lab, self.student, exercise_id, self.attempt, what)
        # Lengths in front: no choice of names can make two different attempts share a secret.
        message = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)
        return random.Random(hmac.new(self.course_key, message, hashlib.sha256).digest())


def hidden_of(exercise_id: str) -> Hidden:
    """The hidden half of an exercise. Raises LookupError when none is declared."""
    return declared(__name__, exercise_id, Hidden)
