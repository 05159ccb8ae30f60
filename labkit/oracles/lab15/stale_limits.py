"""Lab 15: step sizes that are taken for the largest stable one with late gradients, as functions of the delay.

All are for a curvature of 1. What is said of them stands with the hints.
"""

from __future__ import annotations

import math

import numpy as np


def largest_root(delay: int, product: float) -> float:
    """The size of the largest root of z^(delay + 1) - z^delay + product: what a step does to the error in the end."""
    polynomial = np.zeros(delay + 2)
    polynomial[:2] = 1, -1
    polynomial[-1] += product
    return float(np.abs(np.roots(polynomial)).max())


RULES_OF_THUMB = (
    lambda delay: 2 / (delay + 1),
    lambda delay: 1 / (delay + 1),
    lambda delay: 2 / max(delay, 1),
    lambda delay: 1 / max(delay, 1),
    lambda delay: 2 / (2 * delay + 1),
    lambda delay: 1 / (2 * delay + 1),
    lambda delay: 2 / (delay + 2),
    lambda delay: 2 / (delay + 1) ** 2,
    lambda delay: 2 / math.sqrt(delay + 1),
    lambda delay: 2 / 2**delay,
)
"""Limits that divide one without a delay by a number of workers or of steps."""
FOR_LONG_DELAYS = (
    lambda delay: math.pi / (2 * delay + 1),
    lambda delay: math.pi / (2 * max(delay, 1)),
    lambda delay: math.pi / (2 * (delay + 1)),
)
"""What the limit comes near to when a step is short beside the delay."""
OTHER_ANGLES = (
    lambda delay: math.pi / (2 * delay + 1),
    lambda delay: math.pi / (4 * delay + 1),
    lambda delay: math.pi / (2 * (delay + 1)),
    lambda delay: math.pi / (2 * (2 * delay - 1)),
    lambda delay: math.pi / (2 * (2 * delay + 3)),
    lambda delay: math.pi / 2 * (2 * delay + 1),
    lambda delay: 90 / (2 * delay + 1),
)
"""In place of pi / (2 (2 delay + 1)): brackets elsewhere, an index that is off by one, degrees."""


def angle_of(delay: int) -> float:
    """The limit is twice its sine."""
    return math.pi / (2 * (2 * delay + 1))


OTHER_THAN_TWICE_THE_SINE = (
    (angle_of, "This is the angle itself. The limit is twice its sine."),
    (lambda delay: 2 * math.cos(angle_of(delay)), "This is twice the cosine of the angle: take the sine."),
    (lambda delay: 2 * math.tan(angle_of(delay)), "This is twice the tangent of the angle: take the sine."),
    (
        lambda delay: math.sin(2 * angle_of(delay)),
        "This is the sine of twice the angle: the limit is twice the sine of the angle.",
    ),
)
"""For whoever has the angle."""
NO_SWING_LATER = (lambda delay: 1 / (math.e * max(delay, 1)), lambda delay: 1 / (math.e * (delay + 1)))
"""What the largest step without any overshoot comes near to, for long delays."""
