"""JupyterLab as a person uses it: open a notebook, type into a cell, run it, press a button, look; and pages of ours.

Nothing here calls JupyterLab's own commands, and nothing waits for a fixed time. Pictures go to build/screenshots/,
for people to look at; no test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.server import REPOSITORY, JupyterLab

SCREENSHOTS = REPOSITORY / "build" / "screenshots"
SELECT_ALL = "ControlOrMeta+a"


def shoot(shown: Page | Locator, name: str) -> None:
    """Save a picture of a page or of a part of it."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    shown.screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")


def open_without_network(page: Page, file: Path) -> None:
    """Open a file of ours; what it asks of the web is refused, and its address added to `page.asked`."""
    page.asked = []
    page.context.route("http**", lambda route: (page.asked.append(route.request.url), route.abort()))
    page.goto(file.as_uri())


def open_text(page: Page, html: str, folder: Path) -> None:
    """Open a page of ours by its text."""
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    open_without_network(page, file)


def choose_menu(page: Page, *path: str) -> None:
    """Click through the menu bar: `choose_menu(page, "Run", "Run All Cells")`."""
    menu, *items = path
    page.locator(".lm-MenuBar-item", has_text=menu).click()
    for item in items:
        page.locator(".lm-Menu-itemLabel").get_by_text(item, exact=True).click()
    expect(page.locator(".lm-Menu")).to_have_count(0)


def shoot_in_both_themes(page: Page, shown: Locator, name: str) -> None:
    """Save a picture of a part of the page as it looks in JupyterLab's light and in its dark theme."""
    for theme, is_light in (("Dark", "false"), ("Light", "true")):
        choose_menu(page, "Settings", "Theme", f"JupyterLab {theme}")
        expect(page.locator("body")).to_have_attribute("data-jp-theme-light", is_light)
        shoot(shown, f"{name}-{theme.lower()}")


@dataclass(frozen=True)
class Notebook:
    """An open notebook with a kernel that is ready."""

    page: Page

    @classmethod
    def open(cls, page: Page, lab: JupyterLab, path: Path) -> Notebook:
        # Without `reset` the tabs of the visit before would open as well.
        page.goto(f"{lab.url}lab/tree/{path.relative_to(lab.root).as_posix()}?token={lab.token}&reset")
        notebook = cls(page)
        expect(page.locator(".jp-Notebook-cell").first).to_be_visible()
        expect(page.locator(".jp-Toolbar-kernelName")).to_contain_text("Python 3")
        notebook.wait_until_idle()
        return notebook

    def cell(self, text: str) -> Locator:
        """The code cell whose source contains `text`."""
        found = self.page.locator(".jp-Notebook .jp-CodeCell", has=self.page.locator(".jp-InputArea", has_text=text))
        expect(found).to_have_count(1)
        found.scroll_into_view_if_needed()
        return found

    def type_into(self, cell: Locator, source: str) -> None:
        """Replace what stands in a cell."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press(SELECT_ALL)
        self.page.keyboard.insert_text(source)

    def run_all_above(self, cell: Locator) -> None:
        cell.locator(".cm-content").click()
        choose_menu(self.page, "Run", "Run All Above Selected Cell")

    def run(self, cell: Locator) -> None:
        """Shift+Enter in a cell."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")

    def wait_until_idle(self) -> None:
        expect(self.page.locator(".jp-Notebook-ExecutionIndicator")).to_have_attribute("data-status", "idle")
