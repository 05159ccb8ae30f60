"""Turn what was asked for ("auto", or a tier's name) into the tier that is used. Fails closed."""

from __future__ import annotations

from grading.errors import UserError
from grading.isolation.probe import try_tier
from grading.isolation.tiers import AUTO, CHOICES, ISOLATING, tier_named
from grading.worker.confine.tier import Tier

ACCEPT = "or accept the risk, on a machine that holds nothing you would mind losing, with --isolation none"


def select_tier(asked: str) -> Tier:
    """The tier to use. Raises UserError where what was asked for does not work here.

    "none" is never chosen for anybody who did not ask for it.
    """
    if asked not in CHOICES:
        raise UserError(f'there is no isolation "{asked}"', f"choose one of: {', '.join(CHOICES)}")
    wanted = ISOLATING if asked == AUTO else (tier_named(asked),)
    failed = []
    for tier in wanted:
        if not tier.isolates:
            return tier
        finding = try_tier(tier)
        if finding.works:
            return tier
        failed.append(finding)
    reasons = "; ".join(f"{finding.tier.name}: {finding.reason}" for finding in failed)
    fixes = "; ".join(f"for {finding.tier.name}, {finding.fix}" for finding in failed)
    raise UserError(f"students' programs cannot be isolated on this machine ({reasons})", f"{fixes}; {ACCEPT}")
