"""Run the attack matrix: which attacks, under which tiers, and what stock nbgrader made of them when last tried."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from grading.errors import UserError
from grading.isolation import isolates, select_tier
from grading.verify.attacks import FOLDER, Attack
from grading.verify.batch import run_batch
from grading.verify.matrix import Matrix


def stored_stock() -> dict[str, str]:
    """What stock nbgrader made of the attacks when that was last tried; nothing where it was not."""
    path = FOLDER / "stock.json"
    return json.loads(path.read_text(encoding="utf-8"))["stock"] if path.is_file() else {}


def choose_attacks(attacks: list[Attack], only: list[str] | None) -> tuple[Attack, ...]:
    """The attacks whose name holds one of these. Raises UserError where there is none."""
    found = tuple(attack for attack in attacks if not only or any(name in attack.name for name in only))
    if not found:
        raise UserError(f"no attack has {' or '.join(only or [])} in its name", "ls tests/attacks")
    return found


def run_attacks(attacks: tuple[Attack, ...], tiers: tuple[str, ...], workers: int) -> Matrix:
    """Run the attacks under each tier that works here. Without isolation, only those that harm no machine run."""
    batches, not_run = {}, {}
    for tier in tiers:
        try:
            select_tier(tier)
        except UserError as error:
            not_run[tier] = str(error)
            continue
        safe = [attack for attack in attacks if isolates(tier) or attack.harmless]
        if len(safe) < len(attacks):
            not_run[tier] = f"{len(attacks) - len(safe)} attacks would harm this machine without isolation"
        if safe:
            with tempfile.TemporaryDirectory(prefix="grading-verify-", ignore_cleanup_errors=True) as root:
                # The one who is confined is another user, who has to get through to what is there for everybody.
                os.chmod(root, 0o755)
                batches[tier] = run_batch(safe, tier, Path(root), workers)
    return Matrix(attacks, batches, not_run)
