"""Lab 20: what 20-predict holds to be true is what the game bills; every moment of a step is the largest in a run."""

from __future__ import annotations

import random

import pytest

from grading.hidden.lab20 import predict as hidden
from labkit.capstone import Bill, bill, read
from labkit.check.diagnosis import first_hint
from labkit.exercises.lab20.config import Config, script_of
from labkit.exercises.lab20.predict import PREDICT
from labkit.oracles.lab20.predict import BILLED, FULL
from labkit.oracles.lab20.predict import PREDICT as ORACLE
from labkit.spec import CaseRun

pytestmark = pytest.mark.lab("20")


def found(config: Config) -> Bill:
    return bill(read(script_of(config)), config.size)


def expected(config: Config) -> dict[str, float]:
    return hidden.expected(CaseRun(config, {}))


def counts(config: Config, one: Bill) -> tuple[int, int]:
    """Bytes moved and tokens of the whole run."""
    moved = config.n_steps * (one.host_bytes + one.link_bytes)
    return moved, config.n_steps * config.n_cards * one.sequences * config.seq_len


@pytest.mark.slow
def test_the_stored_figures_are_what_the_public_runs_are_billed() -> None:
    for config, stored in zip(PREDICT.public, BILLED, strict=True):
        one = found(config)
        assert (one.total_peak_bytes, *counts(config, one)) == stored


@pytest.mark.full("answers")
def test_the_rule_for_hidden_runs_gives_what_they_are_billed() -> None:
    for seed in range(2):
        for config in hidden.runs(random.Random(seed)):
            one, rule = found(config), expected(config)
            assert rule["peak_bytes"] == pytest.approx(one.total_peak_bytes, rel=FULL / 2), config
            assert (rule["moved_bytes"], rule["tokens"]) == pytest.approx(counts(config, one), rel=1e-7), config


def test_the_rule_gives_the_stored_figures() -> None:
    for config, stored in zip(PREDICT.public, BILLED, strict=True):
        assert tuple(expected(config).values()) == pytest.approx(stored, rel=FULL / 2)


def moments(config: Config) -> dict[str, int]:
    return {
        "loss": hidden.at_the_loss(config),
        "block": hidden.in_block(config, config.n_layers - 1),
        "update": hidden.at_the_update(config),
    }


@pytest.mark.parametrize("seed", range(20))
def test_each_moment_is_the_largest_somewhere_and_that_of_the_first_block_never(seed: int) -> None:
    for runs in (PREDICT.public, hidden.runs(random.Random(seed))):
        largest = {max(found, key=found.__getitem__) for found in map(moments, runs)}
        assert largest == {"loss", "block", "update"}
        assert all(hidden.in_block(config, 0) <= max(moments(config).values()) for config in runs)


def test_leaving_out_a_moment_fails_in_some_public_run() -> None:
    for left_out in ("loss", "block", "update"):
        errors = []
        for found in map(moments, PREDICT.public):
            others = max(n_bytes for name, n_bytes in found.items() if name != left_out)
            errors.append(1 - others / max(found.values()) if left_out == max(found, key=found.__getitem__) else 0)
        assert max(errors) > 0.08, left_out


def test_an_error_costs_points_from_two_percent_on() -> None:
    def run(factor: float) -> CaseRun:
        right = {"peak_bytes": 1e9, "moved_bytes": 0.0, "tokens": 1.0}
        return CaseRun(PREDICT.public[0], {}, {**right, "peak_bytes": 1e9 * factor}, expect=lambda run: right)

    assert ORACLE.score([run(1.0), run(0.981)]) == 1.0
    assert ORACLE.score([run(1.0), run(1.05)]) == pytest.approx(0.75)
    assert ORACLE.score([run(0.9201)]) == pytest.approx(0.5, abs=1e-3)


def test_the_copy_in_float32_of_a_bfloat16_gradient_is_missed_with_a_hint_where_it_only_costs_marks() -> None:
    runs = []
    for config, (peak, moved, tokens) in zip(PREDICT.public, BILLED, strict=True):
        left_out = 4 * hidden.largest_weight(config) * (config.states_on_host and config.bytes_per_number == 2)
        right = {"peak_bytes": float(peak), "moved_bytes": float(moved), "tokens": float(tokens)}
        got = {**right, "peak_bytes": peak - left_out}
        runs.append(CaseRun(config, {}, got, expect=lambda run, right=right: right))
    assert 0.5 < ORACLE.score(runs) < 1
    assert "`weight.grad.float()` is a copy then" in first_hint(ORACLE, runs)
