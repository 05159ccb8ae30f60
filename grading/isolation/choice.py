"""Turn what was asked for ("auto", "bwrap", "kernel", "none") into the tier that is used. Fails closed."""

from __future__ import annotations

from grading.errors import UserError
from grading.isolation.probe import TIERS, try_tier

CHOICES = ("auto", *TIERS, "none")
ACCEPT = "or accept the risk, on a machine that holds nothing you would mind losing, with --isolation none"


def choose(asked: str) -> str:
    """The tier to use: "bwrap", "kernel" or "none". Raises UserError where what was asked for does not work here.

    "none" is never chosen for anybody who did not ask for it.
    """
    if asked not in CHOICES:
        raise UserError(f'there is no isolation "{asked}"', f"choose one of: {', '.join(CHOICES)}")
    if asked == "none":
        return asked
    failed = []
    for tier in TIERS if asked == "auto" else (asked,):
        finding = try_tier(tier)
        if finding.works:
            return tier
        failed.append(finding)
    reasons = "; ".join(f"{finding.tier}: {finding.reason}" for finding in failed)
    fixes = "; ".join(f"for {finding.tier}, {finding.fix}" for finding in failed)
    raise UserError(f"students' programs cannot be isolated on this machine ({reasons})", f"{fixes}; {ACCEPT}")
