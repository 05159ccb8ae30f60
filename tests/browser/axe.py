"""axe-core on a page: what somebody meets who reads it with a screen reader, with the keyboard, or sees badly.

The release is pinned, by its number and by what its file hashes to. npm fetches it once into `build/axe-core/`; the
tests load nothing else from a network.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Sequence

from playwright.sync_api import Page

from tests.browser.server import REPOSITORY
from tests.lanes import missing

RELEASE = "4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
FOLDER = REPOSITORY / "build" / "axe-core"
SCRIPT = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
FETCH_S = 120

_RUN = """
async impacts => {
  const found = await axe.run(document, {resultTypes: ['violations']});
  return found.violations.filter(each => impacts.includes(each.impact)).flatMap(each => each.nodes.map(node => ({
    rule: each.id, impact: each.impact, where: node.target.flat().join(' '), why: node.failureSummary,
  })));
}
"""


def problems(page: Page, impacts: Sequence[str] = SERIOUS) -> list[str]:
    """What axe-core finds on the page as it is shown now, one line each: "serious color-contrast: p > a: ...".

    impacts: of "minor", "moderate", "serious" and "critical" those that count. What is folded away is not looked at:
    unfold it first.
    """
    page.evaluate(_script())
    found = page.evaluate(_RUN, list(impacts))
    return [f"{one['impact']} {one['rule']}: {one['where']}: {' '.join(one['why'].split())}" for one in found]


def _script() -> str:
    """The text of axe-core, fetched first where it is not there. Where that cannot be done the test is skipped."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        # The tests' processes share the folder.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_there():
            _fetch()
        return SCRIPT.read_text(encoding="utf-8")


def _is_there() -> bool:
    return SCRIPT.is_file() and hashlib.sha256(SCRIPT.read_bytes()).hexdigest() == SHA256


def _fetch() -> None:
    why = "it looks for what keeps people from using a page"
    npm = shutil.which("npm") or missing("npm", f"axe-core comes through it, and {why}", "sudo apt install npm")
    words = ["install", f"axe-core@{RELEASE}", "--prefix", str(FOLDER), "--ignore-scripts", "--no-save"]
    words += ["--no-audit", "--no-fund", "--fetch-retries=5"]
    done = subprocess.run([npm, *words], cwd=FOLDER, capture_output=True, text=True, timeout=FETCH_S)
    if done.returncode or not _is_there():
        said = (done.stderr.strip().splitlines() or ["its file is not the one that was pinned"])[-1]
        missing(f"axe-core {RELEASE}", f"{why}; npm said: {said}", "look at the network, or at npm's settings")
