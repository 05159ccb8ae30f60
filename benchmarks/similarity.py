"""What the detector of `similar` is worth: copies in disguise, and right answers that nobody copied, of all exercises.

Each right answer of an exercise that stands on its own is copied in disguise (names, order of functions, comments,
layout: tests/similar/disguise.py), and once more with as much foreign code behind it. A copy counts as found where
`similar` would show the pair. The honest answers were written to differ; a class is more alike.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections import Counter

from grading.similar.detector import LEAST_COVERED, compare, fingerprint, given_in
from grading.similar.honest import honest_likeness, honest_programs
from grading.similar.programs import PYTHON, Program
from labkit import exercises
from tests.exercises.harness import stub_of
from tests.similar.disguise import disguised

FOREIGN = "02-sums"
"""Whose solution stands behind a padded copy."""


def main(argv: list[str]) -> dict:
    """Compare them; returns counts and shares."""
    parser = argparse.ArgumentParser(prog="benchmarks similarity", description=__doc__.splitlines()[0])
    parser.add_argument("--labs", nargs="+", metavar="LAB", help="numbers of labs, as 00 08; all without it")
    args = parser.parse_args(argv)
    names = [name for name in exercises.everything() if not args.labs or name[:2] in args.labs]
    why: Counter[str] = Counter()
    copies, padded, honest, compared = [], [], [], 0
    found = Counter()
    for name in names:
        base = Program(stub_of(name))
        measured = honest_likeness(name, base)
        if measured.left_out:
            why[measured.left_out.partition(":")[0]] += 1
            continue
        compared += 1
        given = given_in(base)
        programs = [each for each in honest_programs(name) if each.language == PYTHON]
        prints = [fingerprint(program, given) for program in programs]
        honest += [compare(one, other).share for one, other in itertools.combinations(prints, 2)]
        foreign = honest_programs(FOREIGN)[0].text
        for program, original in zip(programs, prints, strict=True):
            if original.covered < LEAST_COVERED:
                continue
            copy = disguised(program.text)
            for kind, text, shares in (("disguised", copy, copies), ("padded", f"{copy}\n{foreign}", padded)):
                share = compare(original, fingerprint(Program(text), given)).share
                shares.append(share)
                found[kind] += share >= measured.limit
    return {
        "exercises": len(names),
        "exercises_compared": compared,
        "left_out": dict(why),
        "honest_pairs": _spread(honest),
        "disguised_copies": {**_spread(copies), "found": found["disguised"]},
        "padded_copies": {**_spread(padded), "found": found["padded"]},
    }


def _spread(shares: list[float]) -> dict[str, float]:
    tenths = statistics.quantiles(shares, n=10)
    rounded = {"lowest_tenth": tenths[0], "median": statistics.median(shares), "highest_tenth": tenths[-1]}
    return {"n": len(shares), **{name: round(value, 3) for name, value in rounded.items()}}
