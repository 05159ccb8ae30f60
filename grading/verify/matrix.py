"""The matrix as people and programs read it: attack by tier, how it ended, what it earned, what it damaged.

What was not run says why, and is never shown as passed.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import torch

from grading.terminal import table
from grading.verify.attacks import NOT_YET, Attack
from grading.verify.batch import BATCH, AttackOutcome, Batch

STOCK = "stock"


@dataclass(frozen=True)
class Matrix:
    """Batches by tier, and for the tiers that could not run the reason. stock: what stock nbgrader did, by attack."""

    attacks: tuple[Attack, ...]
    batches: Mapping[str, Batch]
    not_run: Mapping[str, str] = field(default_factory=dict)
    stock: Mapping[str, str] = field(default_factory=dict)

    @property
    def breaches(self) -> list[tuple[str, AttackOutcome]]:
        return [(tier, outcome) for tier, batch in self.batches.items() for outcome in batch.breaches]

    def to_json(self) -> dict:
        return {
            "machine": f"{platform.machine()}, Linux {platform.release()}",
            "python": platform.python_version(),
            "torch": torch.__version__,
            "rows": {attack.name: {"row": attack.row, "tries": attack.tries} for attack in self.attacks},
            "tiers": {tier: asdict(batch) for tier, batch in self.batches.items()},
            "stock": dict(self.stock),
            "not run": dict(self.not_run),
            "not yet": dict(NOT_YET),
        }


def as_lines(matrix: Matrix) -> list[str]:
    """One line for each attack, then every breach in words, then what was slow and what was not run."""
    tiers = [*matrix.batches, *([STOCK] if matrix.stock else [])]
    by_tier = {tier: {item.attack: item for item in batch.outcomes} for tier, batch in matrix.batches.items()}
    rows: list[Sequence[object]] = []
    for attack in (*matrix.attacks, None):
        name = attack.name if attack else BATCH
        cells = [_cell(by_tier[tier].get(name)) for tier in matrix.batches]
        cells += [matrix.stock.get(name, "not run")] if matrix.stock else []
        rows.append((name, attack.row or "" if attack else "", *cells))
    lines = [*table(("attack", "row", *tiers), rows), ""]
    lines += [f"BREACH {tier}: {item.attack}: {text}" for tier, item in matrix.breaches for text in item.damage]
    lines += [
        f"slow {tier}: {item.attack}: {item.slow}"
        for tier, batch in matrix.batches.items()
        for item in batch.outcomes
        if item.slow
    ]
    lines += [f"not run: {tier}: {reason}" for tier, reason in matrix.not_run.items()]
    lines += [f"not yet: row {row}: {reason}" for row, reason in NOT_YET.items()]
    for tier, batch in matrix.batches.items():
        took = (
            f"{batch.wall_s:.0f} s, at most {batch.most_processes} processes and {batch.memory_bytes / 2**30:.1f} GiB"
        )
        lines.append(f"{tier}: {len(batch.outcomes) - 1} attacks, {len(batch.breaches)} breached; {took}")
    return lines


def _cell(outcome: AttackOutcome | None) -> str:
    if outcome is None:
        return "not run"
    text = f"{outcome.outcome} {outcome.points:g}" if outcome.outcome else "graded"
    return f"BREACH ({text}, {len(outcome.damage)})" if outcome.is_breach else text
