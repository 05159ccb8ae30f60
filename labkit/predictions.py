"""What a student expects before a measurement, beside what was measured: for the student alone.

The object is made by a lab's first cell and holds all of it: nothing is saved, sent or graded, and nothing here raises
at a student. It neither measures nor knows a right answer: the notebook's own cells hand their results in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from labkit.shell import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMED_FROM = 1.05
"""Factor between prediction and measurement from which it is named; below, the prediction is as good as right."""


@dataclass(frozen=True)
class Prediction:
    """One thing to predict: a number with a unit, or one of the choices in `among`.

    guess and measured: None as long as the student has not written one, or the notebook has not measured.
    exact: whether a number is right or wrong, like a choice, so that no factor is spoken of.

        Prediction("peak", guess=12.0, measured=18.4, unit="GB")
    """

    name: str
    guess: float | str | None = None
    measured: float | str | None = None
    unit: str = ""
    among: tuple[str, ...] = ()
    exact: bool = False

    @property
    def factor(self) -> float | None:
        """guess / measured; None where one is missing, or no ratio is meant (zero, signs that differ, `exact`)."""
        if self.exact:
            return None
        if isinstance(self.guess, float) and isinstance(self.measured, float) and self.guess * self.measured > 0:
            return self.guess / self.measured
        return None

    def in_words(self) -> str:
        """ "Your prediction of peak: 12 GB. Measured: 18.4 GB. Too low by a factor of 1.5." """
        found = "not measured yet" if self.measured is None else self.with_unit(self.measured)
        if self.guess is None:
            return f"{self.name}: measured {found}, no prediction." if self.measured is not None else ""
        text = f"Your prediction of {self.name}: {self.with_unit(self.guess)}. Measured: {found}."
        return f"{text} {self.distance()}" if self.measured is not None else text

    def distance(self) -> str:
        """How far off the guess is, as a sentence; empty where there is nothing to compare."""
        if self.guess is None or self.measured is None:
            return ""
        if self.guess == self.measured:
            return "Right."
        if self.exact or isinstance(self.guess, str) or isinstance(self.measured, str):
            return "Not this time."
        if self.factor is None:
            return f"Off by {self.with_unit(abs(self.guess - self.measured))}."
        apart = max(self.factor, 1 / self.factor)
        if apart < NAMED_FROM:
            return "As good as right."
        return f"Too {'high' if self.factor > 1 else 'low'} by a factor of {float(f'{apart:.2g}'):,.10g}."

    def with_unit(self, value: float | str) -> str:
        """ "12.5 GB", "1,200 patterns", "deadlock" """
        if isinstance(value, str):
            return value
        whole = value.is_integer() or abs(value) >= 1e4
        return f"{f'{value:,.0f}' if whole else f'{value:.{7 if self.exact else 4}g}'} {self.unit}".strip()


class Predictions:
    """The predictions of one lab: `guesses = Predictions("02")`, once, in the lab's first cell."""

    def __init__(self, lab: str) -> None:
        self._lab = lab
        self._all: dict[str, Prediction] = {}

    def __getitem__(self, name: str) -> float | str | None:
        """What the student predicted; None without a prediction."""
        return self._of(name).guess

    def take(self, name: str, guess: object, unit: str = "", among: Sequence[str] = (), exact: bool = False) -> None:
        """Remember what the student expects, in place of an earlier guess: `guesses.take("peak", None, unit="GB")`.

        guess: None as long as there is none; a number of `unit`, or one of the texts in `among`. For anything else
        a line is printed that says what to write. exact: whether a number is right or wrong, with nothing between.
        """
        asked = replace(self._of(name), unit=unit, among=tuple(among), exact=exact)
        understood, complaint = _read(guess, asked.among)
        self._all[name] = replace(asked, guess=understood)
        if complaint:
            print(f"{name}: {complaint}")
        elif understood is not None:
            print(f"{name}: you predict {asked.with_unit(understood)}.")

    def settle(self, name: str, measured: object) -> None:
        """Print the student's guess beside what was measured: `guesses.settle("peak", 18.4)`.

        measured: a number or one-element tensor in the unit of the guess, one of the choices, or None where the
        notebook could not measure.
        """
        value = measured if measured is None or isinstance(measured, str) else float(measured)
        self._all[name] = replace(self._of(name), measured=value)
        if text := self._all[name].in_words():
            print(text)

    def mark(self, figure: Figure, name: str, axis: str = "y") -> Figure:
        """The figure with a dashed line at the student's number on its first pair of axes; as it was without one.

        axis: "x" for a vertical line, "y" for a horizontal one.
        """
        from labkit.figures.predictions import mark_prediction

        guess = self[name]
        return mark_prediction(figure, guess, axis) if isinstance(guess, float) else figure

    def score(self) -> None:
        """Show all predictions of the lab beside what was measured, numbers on an axis of guess / measured."""
        from labkit.figures.predictions import PredictionScore

        show(PredictionScore(self._lab, tuple(self._all.values())))

    def _of(self, name: str) -> Prediction:
        return self._all.get(name, Prediction(name))


def _read(guess: object, among: tuple[str, ...]) -> tuple[float | str | None, str]:
    """The guess as it is kept, and what to say of one that cannot be."""
    if guess is None:
        return None, ""
    if among:
        plain = str(guess).strip().casefold()
        found = next((choice for choice in among if choice.casefold() == plain), None)
        return found, "" if found else f"write one of {', '.join(repr(choice) for choice in among)}."
    try:
        number = math.nan if isinstance(guess, bool) else float(guess)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, RuntimeError):
        number = math.nan
    if not math.isfinite(number):
        return None, "write a number in place of None, without its unit."
    return number, ""
