"""The system's Chromium, and a page in it that remembers nothing from test to test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.pages import open_text, shoot
from tests.lanes import require_browser

# The later ones keep it from talking to anybody but our server.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]
PATIENCE_MS = 60_000
LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 360), "dark phone": ("dark", 360)}
"""How pages of ours are looked at: a theme, and a width in pixels."""


# Not for the whole session: Playwright occupies the thread's event loop, which other tests want for themselves.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = require_browser()
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture(params=list(LOOKS))
def shown(request: pytest.FixtureRequest, browser: Browser, tmp_path: Path, html: str) -> Iterator[Page]:
    """The page that the test's module is about, in each of its looks, unfolded, without a network.

    html: its text, a fixture of that module's.
    """
    scheme, width = LOOKS[request.param]
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    open_text(page, html, tmp_path)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    shoot(page, f"{request.module.__name__.rpartition('.test_')[2]}-{request.node.callspec.id}")
    yield page
    context.close()
