"""A figure of a function that the student has not written yet: a note in its place, so that the notebook runs on."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from labkit.blanks import blank_met_by
from labkit.figures.canvas import TRUTH, LabFigure, new_figure

Arguments = ParamSpec("Arguments")
Drawn = TypeVar("Drawn")

NOTE = (
    "Nothing to draw yet: this figure is made from your own answer, and {name} is still blank. Write it, then run this "
    "cell again."
)


def or_a_note(draw: Callable[Arguments, Drawn]) -> Callable[Arguments, Drawn | LabFigure]:
    """draw, with a note instead of its figure where it meets a stub. Every other error is raised as it is."""

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Drawn | LabFigure:
        try:
            return draw(*args, **kwargs)
        except Exception as error:
            if name := blank_met_by(error):
                return _note(name)
            raise

    return drawn


def _note(name: str) -> LabFigure:
    figure, axes = new_figure(7.0, 0.9)
    axes.axis("off")
    axes.text(0, 0.5, textwrap.fill(NOTE.format(name=name), 92), color=TRUTH, va="center", transform=axes.transAxes)
    return figure
