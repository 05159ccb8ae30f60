"""The helper that looks for barriers finds them where they are: without these, its silence would say nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser import axe

pytestmark = [pytest.mark.browser, pytest.mark.full("classroom")]

GOOD = (
    '<!DOCTYPE html><html lang="en"><head><title>A page</title></head>'
    '<body><main><h1>A page</h1><p>{}</p><img src="data:," alt="a dot"></main></body></html>'
)


def test_a_page_without_barriers_has_none(page: Page) -> None:
    page.set_content(GOOD.format("Text."))
    assert axe.problems(page) == []


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        ("image-alt", ' alt="a dot"', ""),
        ("html-has-lang", ' lang="en"', ""),
        ("color-contrast", "<p>", '<p style="color:#aaa;background:#fff">'),
        ("link-name", "Text.", '<a href="#here"></a>'),
    ],
)
def test_a_barrier_is_named_with_its_place(page: Page, rule: str, old: str, new: str) -> None:
    page.set_content(GOOD.format("Text.").replace(old, new))
    (found,) = axe.problems(page)
    assert found.split(":")[0] in (f"serious {rule}", f"critical {rule}")


def test_a_lesser_one_is_found_on_demand(page: Page) -> None:
    page.set_content(GOOD.format("Text.").replace("<p>", "<h4>Far below</h4><p>"))
    assert axe.problems(page) == []
    (found,) = axe.problems(page, ("moderate",))
    assert found.startswith("moderate heading-order: h4")


def test_a_file_that_is_not_the_pinned_one_is_not_run(page: Page, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """A program in npm's place leaves something else where axe-core belongs."""
    monkeypatch.setenv("LABS_REQUIRE_LANES", "1")
    monkeypatch.setattr(axe, "FOLDER", tmp_path)
    monkeypatch.setattr(axe, "SCRIPT", tmp_path / "axe.min.js")
    fake = tmp_path / "npm"
    fake.write_text(f"#!/bin/sh\necho 'throw 1' > '{tmp_path}/axe.min.js'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    page.set_content(GOOD.format("Text."))
    with pytest.raises(pytest.fail.Exception, match="not the one that was pinned"):
        axe.problems(page)
