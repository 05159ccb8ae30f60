"""How alike two programs are, by copydetect: the parts of each that the other has too, whatever names stand in them.

copydetect (MIT, from PyPI; extra `similarity`) reads a program as tokens, without names, texts, comments and blanks,
and compares what remains by winnowing, the way of MOSS. Every fingerprint is kept here instead of a choice of them,
which copydetect makes by Python's own hashes: those differ from run to run, and so would the result. What was given to
everybody is taken out here, because copydetect drops repetitions of an answer's own with it.
"""

from __future__ import annotations

import io
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from grading.errors import UserError
from grading.similar.programs import SUFFIXES, Program

GRAM = 15
"""Characters of a fingerprint, once names are one character each: what is shorter counts for nothing."""

LEAST_COVERED = 60
"""Characters that a program has to have beside what was given; of less nobody can tell anything."""

MOST_CHARACTERS = 100_000
"""Of one answer. A longer one is compared by its beginning."""


@dataclass(frozen=True)
class Fingerprint:
    """A program, ready to be compared. `covered`: how much of it can be, in characters of its tokens."""

    program: Program
    prints: Any
    covered: int


@dataclass(frozen=True)
class Likeness:
    """share: what both have in common, as a part of the one that has less beside it, from 0 to 1. So a copy that was
    made longer is as alike as before.

    parts: where that stands in each text, as (start, end).

        Likeness(0.91, parts=(((0, 120), (180, 311)), ((14, 340),)))
    """

    share: float
    parts: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]


def require_detector() -> None:
    """Raises UserError where copydetect is not installed."""
    try:
        import copydetect  # noqa: F401
    except ImportError as error:
        remedy = "pip install -e '.[similarity]' in the checkout, or export --format similarity for another detector"
        raise UserError("copydetect is not installed", remedy) from error


def fingerprint(program: Program, given: Collection[int] = ()) -> Fingerprint:
    """The program's fingerprints but those in `given`."""
    from copydetect import CodeFingerprint
    from copydetect.utils import get_token_coverage

    text = program.text[:MOST_CHARACTERS]
    name = f"answer{SUFFIXES[program.language]}"
    prints = CodeFingerprint(name, GRAM, 1, fp=io.StringIO(text), language=program.language)
    prints.hash_idx = {value: places for value, places in prints.hash_idx.items() if value not in given}
    prints.hashes = set(prints.hash_idx)
    prints.token_coverage = get_token_coverage(prints.hash_idx, GRAM, len(prints.filtered_code))
    return Fingerprint(program, prints, int(prints.token_coverage))


def given_in(base: Program) -> set[int]:
    """The fingerprints of what everybody was given."""
    return set(fingerprint(base).prints.hashes)


def compare(one: Fingerprint, other: Fingerprint) -> Likeness:
    from copydetect import compare_files

    _, shares, slices = compare_files(one.prints, other.prints)
    parts = tuple(
        tuple(
            (max(0, int(start)), min(len(side.program.text), int(end)))
            for start, end in (zip(*found, strict=True) if len(found) else ())
        )
        for side, found in zip((one, other), slices, strict=True)
    )
    return Likeness(min(1.0, max(map(float, shares))), parts)
