"""Lab 20: logs of a contest to try a referee on. Who cheats is not told."""

from __future__ import annotations

from random import Random
from typing import Any

from labkit.exercises.lab20.cheats import CHEATS, REASONS, draw_logs
from labkit.exercises.lab20.logs import ALLOWED, draw_rules


def example_logs(seed: int = 7, n_cheats: int = 8, n_honest: int = 16) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(logs, rules) of a contest in which no two cheat in the same way, in an order that tells nothing."""
    rng = Random(seed)
    rules = draw_rules(rng)
    of_each = [rng.choice([name for name, one in CHEATS.items() if one.reason == reason]) for reason in REASONS]
    names = rng.sample(of_each, n_cheats) + rng.choices(list(ALLOWED), k=n_honest)
    rng.shuffle(names)
    return draw_logs(tuple(names), rules, rng), rules
