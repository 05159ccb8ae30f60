"""`doctor`: which tiers of isolation work on this machine, found out by trying, and what to do about the others."""

from __future__ import annotations

import argparse
import os
import platform

from grading.errors import UserError
from grading.isolation import select_tier
from grading.isolation.probe import try_tier
from grading.isolation.tiers import ISOLATING
from grading.terminal import say, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    user = "root" if hasattr(os, "geteuid") and os.geteuid() == 0 else "not root"
    say(f"{platform.system()} {platform.release()} on {platform.machine()}, {user}")
    findings = [try_tier(tier) for tier in ISOLATING]
    rows = [(f.tier.name, "works" if f.works else "does not work", f.reason) for f in findings]
    say(*table(("isolation", "here", "why"), rows))
    for finding in findings:
        if not finding.works:
            say(f"{finding.tier.name}: {finding.fix}")
    try:
        say(f"grading uses: {select_tier('auto').name}")
    except UserError as error:
        say(f"grading refuses: {error}")
        return 1
    return 0
