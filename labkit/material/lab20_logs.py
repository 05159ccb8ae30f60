"""Lab 20: logs of a contest to try a referee on. Who cheats is not told."""

from __future__ import annotations

from random import Random
from typing import Any

from labkit.exercises.lab20.cheats import CHEATS, draw_logs
from labkit.exercises.lab20.logs import ALLOWED, draw_rules


def example_logs(seed: int = 0, n_cheats: int = 8, n_honest: int = 16) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(logs, rules) of a contest, in an order that tells nothing."""
    rng = Random(seed)
    rules = draw_rules(rng)
    names = rng.choices(list(CHEATS), k=n_cheats) + rng.choices(list(ALLOWED), k=n_honest)
    rng.shuffle(names)
    return draw_logs(tuple(names), rules, rng), rules
