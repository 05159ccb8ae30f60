"""What labs show can be read in JupyterLab's light theme and its dark one: verdicts, tables, predictions, figures."""

from __future__ import annotations

import io
from collections.abc import Iterator

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from labkit.figures import rounding_to_even
from tests.browser.contrast import texts_in, too_faint
from tests.browser.pages import Notebook, choose_menu, shoot
from tests.browser.server import JupyterLab, start

pytestmark = [pytest.mark.browser, pytest.mark.full("browser")]

VERDICTS = """
from labkit.check.api import VerdictView
from labkit.check.verdict import Verdict
from labkit.shell import show
for outcome in ("passed", "partial", "failed", "unanswered", "limit"):
    rows = (("case", "double(x=2)"), ("problem", "wrong value"), ("expected", "4  (int)"), ("got", "5"))
    rows = () if outcome == "passed" else rows
    hint = None if outcome == "passed" else "`double` adds one: multiply by 2."
    used = (("peak_bytes", 2**20, 2**21, ""),)
    show(VerdictView(Verdict("90-double", outcome, 0.0, f"90-double: {outcome}.", rows, hint, used, 1, 2)))
"""
PREDICTIONS = """
from labkit.predictions import Predictions
guesses = Predictions("90")
for name, guess, measured in (("peak", 12.0, 18.4), ("traffic", 2.0, 900.0), ("ranks", 8.0, 8.0), ("steps", None, 4.0)):
    guesses.take(name, guess, unit="GB")
    guesses.settle(name, measured)
guesses.take("end", "hangs", among=("hangs", "ends"))
guesses.settle("end", "ends")
guesses.score()
"""
FEATURES = """
from labkit.features import Feature, FeatureTable
from labkit.shell import show
one, other = Feature("mixed precision", "1.9 x", "61 % of the peak"), Feature("segments", "–", "17 %")
show(FeatureTable({"03": one, "05": other}))
"""
ENVIRONMENT = """
from labkit.env.finding import EnvFinding
from labkit.env.page import Page
from labkit.shell import show
states = (("ok", None), ("note", "pip install one"), ("red", "pip install another"))
show(Page([EnvFinding(f"package {state}", state, "2.13.0", fix) for state, fix in states]))
"""
PLAYER = """
import labkit.figures
def star_all_reduce(comm, x):
    comm.all_reduce(x)
    return x
labkit.figures.collective_player({"star": star_all_reduce, "star again": star_all_reduce}, n_ranks=4)
"""
SLIDERS = """
import labkit.figures
labkit.figures.ring_steps_player()
"""
MENUS = """
import labkit.figures
labkit.figures.plan_explorer()
"""
GAME = """
from IPython.display import display
from labkit.figures import schedule_game
for number in range(2):
    game = schedule_game(n_stages=2, n_microbatches=2)
    if number:
        game.children[0].children[2].click()
    display(game)
"""
COLOURS = """
import labkit.figures
from labkit.material.lab17_words import Colouring
labkit.figures.colour_words(Colouring())
"""
FIGURE = """
import labkit.figures
labkit.figures.rounding_to_even()
"""
PLANS = """
import labkit.figures
from labkit.plan import LLAMA_8B, leonardo
labkit.figures.plan_plane(LLAMA_8B, leonardo(4))
"""
OUTPUT = ".jp-CodeCell:has-text('{}') .jp-OutputArea-output"
WIDGETS = OUTPUT + " > .widget-vbox"
OUTERMOST = "xpath=ancestor::div[contains(concat(' ', @class, ' '), ' jp-OutputArea ')][last()]"
CELLS = {
    "verdicts": (VERDICTS, ".labkit-verdict", 5),
    "predictions": (PREDICTIONS, ".labkit-predictions", 1),
    "features": (FEATURES, ".labkit-features", 1),
    "environment": (ENVIRONMENT, ".labkit-environment", 1),
    "plans": (PLANS, f"{OUTPUT.format('plan_plane')} > .labkit-plans", 1),
    "game": (GAME, WIDGETS.format("schedule_game"), 2),
    "player": (PLAYER, WIDGETS.format("collective_player"), 1),
    "sliders": (SLIDERS, WIDGETS.format("ring_steps_player"), 1),
    "colours": (COLOURS, WIDGETS.format("colour_words"), 1),
    "menus": (MENUS, WIDGETS.format("plan_explorer"), 1),
    "figure": (FIGURE, f"{OUTPUT.format('rounding_to_even')} img", 1),
}
"""By name: a cell, what it shows, and how many of these. The widgets among them hold pictures or a plane themselves."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[JupyterLab]:
    folder = tmp_path_factory.mktemp("themes")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    cells = [new_code_cell(source.strip(), id=name) for name, (source, _, _) in CELLS.items()]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), work / "shown.ipynb")
    server = start(work, home)
    yield server
    server.stop()


def test_everything_shown_can_be_read_in_both_themes(lab: JupyterLab, page: Page) -> None:
    Notebook.open(page, lab, lab.root / "shown.ipynb")
    choose_menu(page, "Run", "Run All Cells")
    shown = {name: page.locator(place) for name, (_, place, _) in CELLS.items()}
    for name, (_, _, n) in CELLS.items():
        expect(shown[name]).to_have_count(n)
    faint = {}
    for theme, is_light in (("Dark", "false"), ("Light", "true")):
        choose_menu(page, "Settings", "Theme", f"JupyterLab {theme}")
        expect(page.locator("body")).to_have_attribute("data-jp-theme-light", is_light)
        for name in (one for one in CELLS if one != "figure"):
            for part in shown[name].all():
                part.scroll_into_view_if_needed()
                assert texts_in(part)
                faint[theme, name] = faint.get((theme, name), []) + too_faint(part)
            shoot(shown[name].first.locator(OUTERMOST), f"theme-{name}-{theme.lower()}")
        shoot(shown["figure"], f"theme-figure-{theme.lower()}")
        assert_is_a_white_card(shown["figure"])
        for name in ("game", "player", "sliders", "colours"):
            assert_fits(shown[name].first)
    assert shown["figure"].get_attribute("alt") == rounding_to_even().alt
    assert not {where: texts for where, texts in faint.items() if texts}


def assert_fits(output: Locator) -> None:
    """No picture in it is wider than it is."""
    box = output.bounding_box()
    for picture in output.locator("img").all():
        inside = picture.bounding_box()
        assert inside["x"] + inside["width"] <= box["x"] + box["width"]


def assert_is_a_white_card(figure: Locator) -> None:
    """White along its edges, so that what is drawn has the ground it was drawn for; the page shows at the corners."""
    picture = Image.open(io.BytesIO(figure.screenshot())).convert("RGB")
    inside = {picture.getpixel((x, 3)) for x in range(20, picture.width - 20)}
    assert inside == {(255, 255, 255)}
    ground = figure.evaluate("one => getComputedStyle(one.closest('.jp-Notebook')).backgroundColor")
    corner = picture.getpixel((0, 0))
    assert corner == tuple(int(part) for part in ground.strip("rgb()").split(", "))


def test_the_contrast_of_a_faint_text_is_found(page: Page) -> None:
    page.set_content(
        '<div id="all" style="background:#fff;color:#000">black'
        '<p style="color:#777">grey</p><p style="color:rgba(0,0,0,0.3)">thin</p>'
        '<p style="background:linear-gradient(rgba(0,0,0,0.5),rgba(0,0,0,0.5)),#fff;color:#fff">tinted</p>'
        '<svg><text fill="#999">drawn</text></svg></div>'
    )
    part = page.locator("#all")
    contrast = {one.text: one.contrast for one in texts_in(part)}
    assert contrast["black"] == pytest.approx(21) and contrast["grey"] == pytest.approx(4.48, abs=0.01)
    assert contrast["thin"] == pytest.approx(2.11, abs=0.05) and contrast["tinted"] == pytest.approx(3.95, abs=0.05)
    assert [one.split(": ")[1] for one in too_faint(part)] == ["grey", "thin", "tinted", "drawn"]
