"""What a verdict's headline says of points, and the same headline where a course gives other points.

It changes words only: a verdict's score is a share, and belongs to no number of points.
"""

from __future__ import annotations

import math
from dataclasses import replace

from labkit.check.verdict import Verdict


def in_hundredths(points: float) -> float:
    """Points as they are shown: rounded down, so that a part never reads like all of them."""
    return math.floor(points * 100 + 1e-6) / 100


def gained(score: float, points: float) -> str:
    """ "3 points", "1 point"; "1.5 of 3 points" of a score below 1, to two decimals"""
    most = f"{points:g} point{'' if points == 1 else 's'}"
    return most if score == 1.0 else f"{in_hundredths(score * points):g} of {most}"


def with_points(verdict: Verdict, declared: float, points: float) -> Verdict:
    """The verdict on an exercise of `declared` points, as it reads in a course that gives `points` for it."""
    before, after = (f"{gained(verdict.score, worth)}." for worth in (declared, points))
    if before == after or not verdict.headline.endswith(f" {before}"):
        return verdict
    return replace(verdict, headline=verdict.headline.removesuffix(before) + after)
