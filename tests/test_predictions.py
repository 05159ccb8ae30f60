"""Predictions: what a student reads after a guess, after a measurement and at the lab's end."""

from __future__ import annotations

import re

import pytest
import torch

from labkit import Predictions
from labkit.figures.canvas import new_figure
from labkit.figures.predictions import PredictionScore


@pytest.fixture
def guesses() -> Predictions:
    return Predictions("02")


def said(capsys) -> str:
    return capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("guess", "measured", "words"),
    [
        (12, 18.4, "Too low by a factor of 1.5."),
        (40.0, 20, "Too high by a factor of 2."),
        (20, 20, "Right."),
        (20, 20.5, "As good as right."),
        (0, 20, "Off by 20 GB."),
        (-3, 20, "Off by 23 GB."),
        (3, 0, "Off by 3 GB."),
        ("12", torch.tensor([6.0]), "Too high by a factor of 2."),
    ],
)
def test_a_number_is_told_by_its_factor(guesses, capsys, guess, measured, words) -> None:
    guesses.take("peak", guess, unit="GB")
    assert said(capsys) == f"peak: you predict {float(guess):g} GB."
    guesses.settle("peak", measured)
    assert said(capsys) == (f"Your prediction of peak: {float(guess):g} GB. Measured: {float(measured):g} GB. {words}")


def test_large_and_uneven_numbers_are_readable(guesses, capsys) -> None:
    guesses.take("tokens", 1234567.8)
    guesses.settle("tokens", 0.0001234567)
    assert said(capsys).endswith("1,234,568. Measured: 0.0001235. Too high by a factor of 1e+10.")


def test_a_choice_is_right_or_not(guesses, capsys) -> None:
    for guess, words in (("a Quarter ", "Not this time."), ("half", "Right.")):
        guesses.take("share", guess, among=("a tenth", "a quarter", "half"))
        said(capsys)
        guesses.settle("share", "half")
        assert said(capsys).endswith(f"Measured: half. {words}")


def test_an_exact_number_is_right_or_not(guesses, capsys) -> None:
    for guess, words in ((2049, "2,049. Measured: 2,048. Not this time."), (2048, "2,048. Measured: 2,048. Right.")):
        guesses.take("rounded", guess, exact=True)
        said(capsys)
        guesses.settle("rounded", torch.tensor(2048.0))
        assert said(capsys).endswith(words)
    guesses.take("rounded", 1.0156, exact=True)
    guesses.settle("rounded", 1.0078125)
    assert "Measured: 1.007812. Not" in said(capsys)
    guesses.score()
    assert "Lab 02: 1 of 1 predictions made, 0 of 1 right." in said(capsys)


@pytest.mark.parametrize("wrong", ["12 GB", True, float("inf"), float("nan"), [1, 2], 2 + 3j, torch.ones(2), 10**400])
def test_what_is_no_number_is_asked_for_again_and_stops_nothing(guesses, capsys, wrong) -> None:
    guesses.take("peak", wrong, unit="GB")
    assert said(capsys) == "peak: write a number in place of None, without its unit."
    assert guesses["peak"] is None


def test_what_is_no_choice_is_asked_for_again(guesses, capsys) -> None:
    guesses.take("share", 0.5, among=("a tenth", "half"))
    assert said(capsys) == "share: write one of 'a tenth', 'half'."
    assert guesses["share"] is None


def test_a_notebook_in_which_nothing_was_filled_in_says_what_was_measured(guesses, capsys) -> None:
    guesses.take("peak", None, unit="GB")
    assert said(capsys) == ""
    guesses.settle("peak", 18.4)
    assert said(capsys) == "peak: measured 18.4 GB, no prediction."
    guesses.score()
    assert said(capsys).splitlines() == [
        "Lab 02: 0 of 1 predictions made.",
        "      predicted  measured",
        "peak  –          18.4 GB",
    ]


def test_skipped_cells_leave_gaps_and_no_errors(guesses, capsys) -> None:
    guesses.score()
    assert said(capsys) == "Lab 02: no predictions yet."
    guesses.take("peak", 12, unit="GB")
    guesses.settle("never asked", 3)
    guesses.settle("peak", None)
    assert said(capsys).splitlines()[1:] == [
        "never asked: measured 3, no prediction.",
        "Your prediction of peak: 12 GB. Measured: not measured yet.",
    ]
    guesses.score()
    assert "peak         12 GB      –" in said(capsys)


def test_a_second_guess_takes_the_place_of_the_first(guesses, capsys) -> None:
    guesses.take("peak", 12, unit="GB")
    guesses.settle("peak", 20)
    guesses.take("peak", 20, unit="GB")
    said(capsys)
    guesses.score()
    assert said(capsys).endswith("20 GB      20 GB     Right.")


def test_two_labs_know_nothing_of_one_another() -> None:
    one, other = Predictions("01"), Predictions("02")
    one.take("peak", 12)
    assert other["peak"] is None


def filled(guesses: Predictions) -> PredictionScore:
    guesses.take("<b>close</b>", 15)
    guesses.settle("<b>close</b>", 10)
    guesses.take("far", 1000)
    guesses.settle("far", 10)
    guesses.take("beyond", 1)
    guesses.settle("beyond", 1e9)
    guesses.take("share", "half", among=("half", "all"))
    guesses.settle("share", "all")
    return PredictionScore("02", tuple(guesses._all.values()))


def test_the_score_counts_numbers_and_choices_apart(guesses) -> None:
    assert filled(guesses).headline() == (
        "Lab 02: 4 of 4 predictions made, 1 of 3 numbers within a factor of 2, 0 of 1 others right."
    )


def test_the_score_draws_every_ratio_where_it_belongs(guesses) -> None:
    html = filled(guesses)._repr_html_()
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', html)]
    assert html.count("<svg") == 4, "an axis and three numbers; a choice has no ratio"
    assert dots[0] == pytest.approx(130 + 0.176 / 3 * 124, abs=0.1) and dots[1] == pytest.approx(
        130 + 2 / 3 * 124, 0.01
    )
    assert len(dots) == 2 and "<path" in html, "what lies beyond the axis is an arrow at its end"
    assert "&lt;b&gt;close" in html and "<b>" not in html
    assert "÷ 1000" in html and "× 1000" in html


def test_the_score_takes_the_colours_of_the_page(guesses) -> None:
    """No ground and no black or white of its own: what is not drawn in a middle tone is the page's text colour."""
    html = filled(guesses)._repr_html_()
    colours = set(re.findall(r'(?:fill|stroke|color|background)[=:]"?([^";]+)', html))
    assert colours == {"currentColor", "inherit", "transparent", "#2e9e5b", "#d17a00"} | {
        "rgba(128,128,128,0.55)",
        "rgba(46,158,91,0.18)",
    }
    assert min(contrast(colour, ground) for colour in ("#2e9e5b", "#d17a00") for ground in ("#ffffff", "#111111")) >= 3


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by the rules of WCAG."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("axis", "scale"), [("x", "linear"), ("y", "linear"), ("x", "log"), ("y", "log")])
@pytest.mark.parametrize("guess", [0.5, 5.0, 50.0])
def test_a_figure_marks_the_guess_and_shows_it(guesses, axis, scale, guess) -> None:
    figure, axes = new_figure()
    axes.plot([1, 10], [1, 10])
    axes.set(xscale=scale, yscale=scale, xlim=(1, 10), ylim=(10, 1))
    guesses.take("peak", guess)
    assert guesses.mark(figure, "peak", axis) is figure
    line = axes.lines[-1]
    assert set(line.get_xdata() if axis == "x" else line.get_ydata()) == {guess}
    low, high = sorted(axes.get_xlim() if axis == "x" else axes.get_ylim())
    assert low <= min(guess, 1) and max(guess, 10) <= high
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "an axis that runs downwards still does"
    assert [text.get_text() for text in axes.texts] == ["your prediction"]
    assert figure._repr_png_()[0].startswith(b"\x89PNG")


def test_a_figure_without_a_guess_stays_as_it_was(guesses) -> None:
    figure, axes = new_figure()
    axes.set_yscale("log")
    guesses.take("none", None)
    guesses.take("choice", "a", among=("a", "b"))
    guesses.take("no place on a log axis", -1)
    for name in ("none", "choice", "no place on a log axis", "never asked"):
        guesses.mark(figure, name)
    assert not axes.lines and not axes.texts
