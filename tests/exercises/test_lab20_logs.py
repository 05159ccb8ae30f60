"""Lab 20: a cheat that is drawn stands in its log as the only one, and what the rules allow stands there as none."""

from __future__ import annotations

from random import Random

import pytest

from grading.hidden.lab20.referee import charges
from labkit.exercises.lab20 import logs
from labkit.exercises.lab20.cheats import CHEATS, ODDITIES, REASONS, draw_logs
from labkit.exercises.lab20.referee import REFEREE
from labkit.oracles.lab20.referee import DEFINITIONS

pytestmark = pytest.mark.lab("20")


@pytest.mark.parametrize("seed", range(6))
def test_a_log_shows_what_was_drawn_and_nothing_else(seed: int) -> None:
    """Read off by a program that knows the logs alone, and counts tokens one by one."""
    rng = Random(seed)
    rules = logs.draw_rules(rng)
    drawn = draw_logs(tuple(ODDITIES), rules, rng)
    found = {name: list(charges(log, rules)) for name, log in zip(ODDITIES, drawn, strict=True)}
    assert found == {name: [one.reason] if one.reason else [] for name, one in ODDITIES.items()}


def test_public_contests_have_every_oddity_and_every_reason_is_explained() -> None:
    public = {name for case in REFEREE.public for name in case.runs}
    assert public == set(ODDITIES)
    assert set(DEFINITIONS) == set(REASONS) == {one.reason for one in CHEATS.values()}


def test_a_score_tells_nothing() -> None:
    """Who cheats stands among the others: neither the best nor the worst third of many runs has many more of them."""
    rng = Random(0)
    names = (list(CHEATS) + ["plain"] * 24) * 10
    drawn = [draw_logs((name,), rules := logs.draw_rules(rng), rng)[0] for name in names]
    hours = sorted(zip((log["virtual_hours"] for log in drawn), (name in CHEATS for name in names), strict=True))
    third = len(hours) // 3
    for part in (hours[:third], hours[-third:]):
        assert 0.35 < sum(cheats for _, cheats in part) / third < 0.65, rules
