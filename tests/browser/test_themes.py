"""What labs show can be read in JupyterLab's light theme and its dark one: verdicts, tables, predictions, figures."""

from __future__ import annotations

import io
from collections.abc import Iterator

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

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
FIGURE = """
import labkit.figures
labkit.figures.rounding_to_even()
"""
PLANS = """
import labkit.figures
from labkit.plan import LLAMA_8B, leonardo
labkit.figures.plan_plane(LLAMA_8B, leonardo(4))
"""
CELLS = {
    "verdicts": (VERDICTS, ".labkit-verdict", 5),
    "predictions": (PREDICTIONS, ".labkit-predictions", 1),
    "features": (FEATURES, ".labkit-features", 1),
    "environment": (ENVIRONMENT, ".labkit-environment", 1),
    "plans": (PLANS, ".labkit-plans", 1),
    "figure": (FIGURE, ".jp-OutputArea-output img", 1),
}


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
        for name in ("verdicts", "predictions", "features", "environment", "plans"):
            for part in shown[name].all():
                part.scroll_into_view_if_needed()
                assert texts_in(part)
                faint[theme, name] = faint.get((theme, name), []) + too_faint(part)
            shoot(page.locator(".jp-OutputArea", has=shown[name]).first, f"theme-{name}-{theme.lower()}")
        shoot(shown["figure"], f"theme-figure-{theme.lower()}")
        assert_is_a_white_card(shown["figure"])
    assert "a tie" in (shown["figure"].get_attribute("alt") or "")
    assert not {where: texts for where, texts in faint.items() if texts}


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
