"""Lab 01: cases of exercises that ask for several small functions, one call each.

A case names the function and its arguments, in the order of the signature; what is right stands in the oracles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import torch

from labkit.spec import Case

NOT_ANSWERED = "not answered yet"


@dataclass(frozen=True)
class Call(Case):
    """One call of one of the student's functions."""

    function: str
    arguments: tuple


def drive_calls(first: str) -> Callable:
    """A driver: out is what the call returned, or NOT_ANSWERED where that function is still blank.

    first: the function that is written first; while it is blank, the whole exercise counts as blank.
    """

    def drive(ans, case: Call, tree: dict, stage) -> dict[str, object]:
        try:
            out = getattr(ans, case.function)(*case.arguments)
        except NotImplementedError:
            if case.function == first:
                raise
            return {"out": NOT_ANSWERED}
        return {"out": [number(x) for x in out] if isinstance(out, tuple | list) else number(out)}

    return drive


def number(value: object) -> object:
    """A one-element tensor as its number, a fraction as the nearest float; anything else as it is."""
    if isinstance(value, Fraction):
        return float(value)
    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
