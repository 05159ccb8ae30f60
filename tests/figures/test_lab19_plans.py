"""Lab 19's plane of plans: a point says what it is, the wall stands at the device's memory, and yours is marked."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from labkit import figures
from labkit.figures.plan_points import FITS, FULL, RULE
from labkit.plan import LLAMA_8B, MIXTRAL, Plan, leonardo

SVG = "{http://www.w3.org/2000/svg}"
SMALL = replace(LLAMA_8B, n_layers=8, global_batch=16)


def titles(svg: str) -> list[tuple[str, str]]:
    """(colour, text) of each point."""
    points = ElementTree.fromstring(svg).iter(f"{SVG}circle")
    return [(point.get("fill"), point[0].text) for point in points if len(point)]


def test_every_point_says_on_hovering_what_it_is_and_what_it_breaks() -> None:
    found = titles(figures.plan_plane(SMALL, leonardo(2)).svg)
    said = {
        FITS: "GB a device: fits",
        FULL: "GB of 64 GB, most of it",
        RULE: "tensor groups of t = 8 do not fill nodes",
    }
    assert set(said) == {colour for colour, _ in found}
    for colour, text in found:
        assert re.match(r"t \d+, p \d+, d \d+, c \d+", text) and said[colour] in text


def test_the_wall_parts_what_fits_from_what_does_not() -> None:
    drawn = ElementTree.fromstring(figures.plan_plane(SMALL, leonardo(2)).svg)
    (wall,) = (float(re.match(r"M([\d.]+)", path.get("d"))[1]) for path in drawn.iter(f"{SVG}path")
               if path.get("stroke-dasharray"))  # fmt: skip
    for point in drawn.iter(f"{SVG}circle"):
        if len(point) and point.get("fill") != RULE:
            assert (float(point.get("cx")) <= wall + 0.1) == (point.get("fill") == FITS)


def test_your_plan_is_marked_where_it_lies_and_told_in_words() -> None:
    plan = Plan(data=8, sharding=3, recompute="selective")
    plane = figures.plan_plane(SMALL, leonardo(2), plan)
    assert "your plan: " in plane.svg and str(plan) in plane.alt and plane.alt.endswith(": fits.")
    assert plane.alt in re.search(r'aria-label="([^"]*)"', plane.svg)[1]
    assert "Yours" not in figures.plan_plane(SMALL, leonardo(2)).alt


def test_a_plan_that_cannot_be_estimated_is_named_and_not_drawn() -> None:
    plane = figures.plan_plane(SMALL, leonardo(2), Plan(data=3))
    assert plane.alt.endswith("Yours breaks a rule and cannot be drawn.")
    assert "your plan" not in plane.svg


def test_a_knob_has_a_colour_for_each_value() -> None:
    plane = figures.plan_plane(SMALL, leonardo(2), coloured_by="ZeRO level")
    colours = Counter(re.search(r"ZeRO-(\d)", text)[1] + colour for colour, text in titles(plane.svg))
    assert sorted(key[0] for key in colours) == list("0123") and len({key[1:] for key in colours}) == 4
    assert all(f"ZeRO level {level}" in plane.svg for level in range(4))


@pytest.mark.slow
def test_the_words_count_plans_and_name_the_best_times() -> None:
    said = figures.plan_plane(MIXTRAL, leonardo(8)).alt
    assert "2,479 of which fit into 64 GB. The fastest of these takes 57.7 s a step." in said


def test_it_is_an_svg_on_a_white_card() -> None:
    html = figures.plan_plane(SMALL, leonardo(2))._repr_html_()
    assert html.startswith('<div class="labkit-plans" style="background:#ffffff') and html.endswith("</svg></div>")


@pytest.mark.slow
def test_the_explorer_draws_again_for_another_run_and_in_other_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ipywidgets")
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda plane: shown.append(plane))
    run, colours = figures.plan_explorer().children[0].children
    run.index = 1
    colours.value = "t"
    assert [plane.alt.split(":")[0] for plane in shown] == [
        "Llama-3-8B on Leonardo, 4 nodes",
        *["Llama-3-8B, long on Leonardo, 16 nodes"] * 2,
    ]
    assert [">t 4<" in plane.svg for plane in shown] == [False, False, True]


def test_without_widgets_it_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert figures.plan_explorer().alt.startswith("Llama-3-8B on Leonardo")
