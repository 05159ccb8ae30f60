"""The pictures of README.md, taken anew by `make pictures`: a lab in JupyterLab, and the report on the sample class.

They are what a person sees in Chromium, in fewer colours so that the files are small. No test compares them.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, expect, sync_playwright

from grading.demo.examples import example
from tests.browser.conftest import ARGUMENTS, PATIENCE_MS
from tests.browser.pages import Notebook
from tests.browser.server import REPOSITORY, start_program
from tests.lanes import require_browser

PICTURES = REPOSITORY / "docs" / "images"
LAB, EXERCISE, WRONG = "02_float_formats", "02-decode", "no_subnormals"
WIDTH, HEIGHT = 1280, 1280
COLOURS = 256


def main(names: list[str]) -> None:
    """Take those of "lab" and "report" that are named, or both, and say how large they are."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=require_browser(), args=ARGUMENTS)
        for name in names or TAKE:
            (Path(folder) / name).mkdir()
            save(TAKE[name](browser, Path(folder) / name), PICTURES / f"{name}.png")
        browser.close()


def take_lab(browser: Browser, folder: Path) -> bytes:
    """A wrong answer, what its check says, and the figure that is drawn with it."""
    tree, home = folder / "tree", folder / "home"
    for part in (tree / "work", tree / "notebooks", home):
        part.mkdir(parents=True)
    shutil.copytree(REPOSITORY / ".make", tree / ".make")
    shutil.copy(REPOSITORY / "notebooks" / f"{LAB}.ipynb", tree / "notebooks")
    server = start_program([sys.executable, str(tree / ".make" / "lab.py")], tree / "work", home)
    try:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        notebook = Notebook.open(page, server, tree / "work" / f"{LAB}.ipynb")
        answer = notebook.cell("def decode(")
        notebook.run_all_above(answer)
        notebook.wait_until_idle()
        notebook.type_into(answer, example("wrong", f"{EXERCISE}/{WRONG}").source.strip())
        notebook.run(answer)
        check = notebook.cell(f'check("{EXERCISE}"')
        notebook.run(check)
        # What waits behind a cell that fails is not run.
        expect(check).to_contain_text("CheckFailed")
        figure = notebook.cell("number_line(decode)")
        notebook.run(figure)
        expect(figure.locator("img")).to_be_visible()
        page.keyboard.press("ControlOrMeta+b")  # the list of files goes
        answer.evaluate("cell => cell.scrollIntoView({block: 'start'})")
        notebook.wait_until_idle()
        return page.screenshot(animations="disabled")
    finally:
        server.stop()


def take_report(browser: Browser, folder: Path) -> bytes:
    """What the report on the class that `make demo` grades says of lab 02."""
    demo = [sys.executable, "-m", "grading", "demo", "--out", str(folder / "demo")]
    subprocess.run(demo, cwd=REPOSITORY, check=True)
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(f"{(folder / 'demo' / 'report.html').as_uri()}#lab-1")
    return page.screenshot(animations="disabled")


def save(picture: bytes, path: Path) -> None:
    """Write a PNG with a palette of its own."""
    path.parent.mkdir(exist_ok=True)
    drawn = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    drawn.save(path, "PNG", optimize=True)
    print(f"{path.relative_to(REPOSITORY)}: {path.stat().st_size / 1024:.0f} KiB")


TAKE = {"lab": take_lab, "report": take_report}

if __name__ == "__main__":
    main(sys.argv[1:])
