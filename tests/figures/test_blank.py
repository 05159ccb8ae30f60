"""A figure of a function that is not written yet is a note; any other error is the student's to see."""

from __future__ import annotations

import pytest

from labkit import figures
from labkit.figures import Plan
from labkit.figures.canvas import LabFigure
from labkit.ranks import RankFailed
from labkit.spec import STUB_MESSAGE


def blank(*arguments):
    raise NotImplementedError(STUB_MESSAGE)


def text_of(figure: LabFigure) -> str:
    (axes,) = figure.axes
    return " ".join(" ".join(text.get_text() for text in axes.texts).split())


def test_a_blank_function_is_named():
    assert text_of(figures.kept_per_token(blank, Plan().config())).startswith("Nothing to draw yet")
    assert "blank is still blank" in text_of(figures.kept_per_token(blank, Plan().config()))


def test_a_function_that_is_not_implemented_for_a_reason_of_its_own_is_an_error():
    def of_mine(*arguments):
        raise NotImplementedError("no eager attention")

    with pytest.raises(NotImplementedError, match="no eager attention"):
        figures.kept_per_token(of_mine, Plan().config())


def test_a_blank_function_on_simulated_ranks_is_named():
    assert "blank is still blank" in text_of(figures.collective_steps(blank, n_ranks=2))


def test_an_error_of_a_rank_stays_an_error():
    with pytest.raises(RankFailed, match="ZeroDivisionError"):
        figures.collective_steps(lambda comm, x: 1 / 0, n_ranks=2)


def test_other_errors_stay_errors():
    with pytest.raises(ZeroDivisionError):
        figures.kept_per_token(lambda *arguments: 1 / 0, Plan().config())


def test_every_public_figure_survives_a_blank():
    drawing = [name for name in figures.__all__ if not isinstance(getattr(figures, name), type)]
    assert len(drawing) > 40
    assert [name for name in drawing if not hasattr(getattr(figures, name), "__wrapped__")] == []
