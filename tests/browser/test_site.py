"""The course's pages in a real browser: barriers, both themes, a narrow screen, the keyboard, the search."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser import axe
from tests.browser.pages import shoot
from tests.site.pages import MOST_S, NAMES, site

pytestmark = [pytest.mark.browser, pytest.mark.full("classroom"), pytest.mark.timeout(MOST_S)]
WIDE, NARROW = 1280, 360
LOOKS = (("light", WIDE), ("dark", NARROW))
"""Between them both themes and both widths; pages of one kind differ in nothing else."""
ALL_LOOKS = (*LOOKS, ("light", NARROW), ("dark", WIDE))
EACH_KIND = ("index", "exercises", "api", "labs/00_start_here", "instructors/map")

UNFOLD = "document.querySelectorAll('details').forEach(one => one.open = true)"
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture
def open_page(browser: Browser) -> Callable[..., Page]:
    """Opens a page of the site as a person with this theme and width would; what it asks a network for is an error."""
    contexts: list[BrowserContext] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    def opened(name: str, theme: str = "light", width: int = WIDE) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        contexts.append(context)
        context.route("http**", refuse)
        page = context.new_page()
        page.goto(f"{(site() / name).as_uri()}.html")
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        return page

    asked: list[str] = []
    yield opened
    for context in contexts:
        context.close()
    assert asked == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_keeps_people_from_a_page(open_page: Callable[..., Page], name: str) -> None:
    """axe-core finds nothing serious, headings are in order, and a narrow screen shows the page in its whole width."""
    found = {}
    for theme, width in ALL_LOOKS if name in EACH_KIND else LOOKS:
        page = open_page(name, theme, width)
        page.evaluate(UNFOLD)
        found[theme, width] = axe.problems(page) + [
            one for one in axe.problems(page, ("moderate",)) if "heading-order" in one
        ]
        if page.evaluate(WIDTH) > width:
            found[theme, width].append(f"the page is {page.evaluate(WIDTH)} pixels wide")
        shoot(page, f"site-{name.replace('/', '-')}-{theme}-{width}")
        page.close()
    assert not {look: each for look, each in found.items() if each}


@pytest.mark.parametrize("width", [1280, 1440, 1920])
def test_most_cells_show_their_lines_whole(open_page: Callable[..., Page], width: int) -> None:
    """The theme's own columns beside the text leave it 62 letters of code at 1280 pixels."""
    page = open_page("labs/02_float_formats", "light", width)
    cells = page.locator(".cell_input pre")
    cut = cells.evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length")
    assert cut <= cells.count() / 4


def test_the_title_leaves_room_for_the_search_on_a_phone(open_page: Callable[..., Page]) -> None:
    page = open_page("index", "light", NARROW)
    title = page.locator(".logo__title").bounding_box()
    search = page.locator(".search-button-field:visible").bounding_box()
    assert search["x"] - (title["x"] + title["width"]) >= 8


def test_the_keyboard_alone_reads_a_lab(open_page: Callable[..., Page]) -> None:
    page = open_page("labs/02_float_formats")
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    expect(skip).to_have_text("Skip to main content")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{(site() / 'labs/02_float_formats.html').as_uri()}#main-content")
    hint = page.locator("details").first
    hint.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(hint).to_have_attribute("open", "")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).not_to_have_count(0)


def test_everything_that_is_wider_than_the_screen_scrolls_from_the_keyboard(open_page: Callable[..., Page]) -> None:
    page = open_page("labs/02_float_formats", width=NARROW)
    boxes = "[...document.querySelectorAll('.math-block, .cell_output .output, pre')]"
    wide = f"{boxes}.filter(one => one.scrollWidth > one.clientWidth)"
    assert page.evaluate(f"{wide}.length") > 5
    assert page.evaluate(f"{wide}.filter(one => one.tabIndex < 0).length") == 0


def test_the_theme_is_chosen_by_the_keyboard_and_kept(open_page: Callable[..., Page]) -> None:
    page = open_page("index")
    page.get_by_role("button", name="Color mode").focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitemradio", name="Dark").or_(page.locator("button[data-mode=dark]")).first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    _wait_for_other_pages_to_see_the_theme(page)
    page.get_by_role("link", name="Exercises").first.click()
    expect(page.get_by_role("heading", name="Exercises", exact=False).first).to_be_visible()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def _wait_for_other_pages_to_see_the_theme(page: Page) -> None:
    """What a page stores reaches the browser's other processes a moment later, and a busy machine's moment is long."""
    other = page.context.new_page()
    other.goto(page.url)
    while other.locator("html").get_attribute("data-theme") != "dark":
        other.reload()
    other.close()


def test_the_search_finds_a_lab_without_a_network(open_page: Callable[..., Page]) -> None:
    page = open_page("index")
    page.keyboard.press("Control+k")
    page.keyboard.type("stochastic rounding")
    page.keyboard.press("Enter")
    results = page.locator("#search-results")
    expect(results.get_by_role("link", name="Lab 02", exact=False).first).to_be_visible()
    results.get_by_role("link", name="Lab 02", exact=False).first.click()
    expect(page.locator("h1")).to_contain_text("Lab 02")


def test_formulas_are_set_by_the_browser(open_page: Callable[..., Page]) -> None:
    page = open_page("labs/06_optimizers")
    formula = page.locator(".math-block math").first
    expect(formula).to_be_visible()
    box = formula.bounding_box()
    assert box and box["height"] > 15 and box["width"] > 100
    shoot(formula, "site-formula")
