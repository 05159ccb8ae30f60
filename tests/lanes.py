"""What a test needs beyond Python, and what happens where it is missing.

On a user's machine the test is skipped with the reason and the fix. Where `LABS_REQUIRE_LANES=1` (in
`.ci/run`) it fails, so that a lane cannot drop out unseen. Nothing is installed here.
"""

import importlib.util
import os
import shutil
from typing import NoReturn

import pytest

from grading.isolation import Tier
from grading.isolation.tiers import ISOLATING, KERNEL, LAYERED, tier_named

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


_LATER = pytest.mark.full("attacks")
_MARKS = {tier: [_LATER] for tier in ISOLATING} | {KERNEL: [], LAYERED: [pytest.mark.slow]}
EVERY_TIER = [pytest.param(tier.name, marks=_MARKS[tier]) for tier in ISOLATING]
"""For `parametrize` and for fixtures. What the kernel tier does for each job the default one does too, within the wall
that is all that the third has: that one, like any other, is left to `make test-all`."""

EVERY_TIER_SLOW = [pytest.param(tier.name, marks=_MARKS[tier] or [pytest.mark.slow]) for tier in ISOLATING]
"""For a fixture that starts a sandbox of its own, which takes seconds on each tier."""

MOSTLY_LATER = [pytest.param(tier.name, marks=[] if tier is KERNEL else [_LATER]) for tier in ISOLATING]
"""For what takes long: the kernel tier, which holds what it holds without a second wall around it, and in `make
test-all` the others."""

DEFAULT_TIER = ISOLATING[0].name


def missing(what: str, why: str, fix: str) -> NoReturn:
    """Skip the running test, or fail it where every lane must run."""
    reason = f"{what} is missing; {why}. Fix: {fix}"
    if os.environ.get("LABS_REQUIRE_LANES") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def require(program: str, why: str, fix: str) -> str:
    """The path of a program on this machine."""
    return shutil.which(program) or missing(program, why, fix)


def require_package(name: str) -> None:
    """An importable package of an optional part of the environment."""
    if importlib.util.find_spec(name) is None:
        missing(f"the package {name}", "some tests need it and are skipped", "make setup")


def require_browser() -> str:
    """The path of a Chromium or Chrome that Playwright can drive."""
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    missing("a browser", "this test drives a real one", "sudo apt install chromium")


def require_tier(name: str) -> Tier:
    """The tier of this name, where it works on this machine."""
    # Imported late: most tests need none of it.
    from grading.isolation.probe import try_tier

    finding = try_tier(tier_named(name))
    return finding.tier if finding.works else missing(f"isolation {name}", finding.reason, finding.fix)
