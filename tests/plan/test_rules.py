"""Every rule of a plan is named by its own name, with the numbers that break it."""

from __future__ import annotations

import pytest

from labkit.plan import LLAMA_8B, MIXTRAL, Plan, broken_rules, divisors, leonardo

RIGHT = Plan(tensor=4, pipeline=2, data=2, context=2, expert=2)


def test_a_plan_that_keeps_all_rules_breaks_none() -> None:
    assert broken_rules(MIXTRAL, leonardo(8), RIGHT) == {}


@pytest.mark.parametrize(
    ("plan", "rule", "figures"),
    [
        (Plan(tensor=4, data=2), "devices", "4 x 1 x 2 x 1 = 8"),
        (Plan(tensor=8, data=4), "node", "t = 8 do not fill nodes of 4"),
        (Plan(tensor=32), "heads", "t = 32"),
        (Plan(pipeline=3), "layers", "p = 3 does not divide the 32 layers"),
        (Plan(context=4096), "sequence", "8192 does not divide the 4096 tokens"),
        (Plan(data=32, expert=16), "experts", "number of experts of a layer, 8"),
        (Plan(data=4, expert=8), "expert ranks", "e = 8 does not divide d = 4"),
        (Plan(data=32, micro_batch=64), "batch", "32 x 64 = 2048 does not divide the 1024 sequences"),
        (Plan(data=32, sharding=4), "sharding", "sharding = 4"),
        (Plan(data=32, recompute="some"), "recompute", "'some'"),
        (Plan(tensor=0), "numbers", "tensor = 0"),
        (Plan(data=32.0), "numbers", "data = 32.0"),
    ],
)
def test_a_broken_rule_is_named_with_its_figures(plan: Plan, rule: str, figures: str) -> None:
    assert figures in broken_rules(MIXTRAL, leonardo(8), plan)[rule]


def test_a_dense_model_has_one_expert() -> None:
    assert broken_rules(LLAMA_8B, leonardo(4), Plan(data=16, expert=2)).keys() == {"experts"}


def test_divisors_are_all_that_divide() -> None:
    for n in range(1, 60):
        assert divisors(n) == [i for i in range(1, n + 1) if n % i == 0]
