"""Turn what was asked for ("auto", or a tier's name) into the name of the tier that is used. Fails closed."""

from __future__ import annotations

from grading.errors import UserError
from grading.isolation.probe import try_tier
from grading.isolation.tiers import AUTO, CHOICES, TIERS, isolates

ACCEPT = "or accept the risk, on a machine that holds nothing you would mind losing, with --isolation none"


def select_tier(asked: str) -> str:
    """The name of the tier to use. Raises UserError where what was asked for does not work here.

    "none" is never chosen for anybody who did not ask for it.
    """
    if asked not in CHOICES:
        raise UserError(f'there is no isolation "{asked}"', f"choose one of: {', '.join(CHOICES)}")
    if not isolates(asked):
        return asked
    failed = []
    for tier in TIERS if asked == AUTO else (asked,):
        finding = try_tier(tier)
        if finding.works:
            return tier
        failed.append(finding)
    reasons = "; ".join(f"{finding.tier}: {finding.reason}" for finding in failed)
    fixes = "; ".join(f"for {finding.tier}, {finding.fix}" for finding in failed)
    raise UserError(f"students' programs cannot be isolated on this machine ({reasons})", f"{fixes}; {ACCEPT}")
