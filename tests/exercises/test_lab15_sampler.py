"""Lab 15: torch's own sampler keeps what the exercise asks for, and what the text says of a wrong one is so."""

from __future__ import annotations

import random

import pytest
import torch

from grading.hidden.lab15.sampler import sampler_cases
from labkit.check.judge import judge
from labkit.check.text import as_text
from labkit.exercises.lab15.sampler import SAMPLER, Split
from labkit.oracles.lab15.sampler import ENOUGH, counts, torchs
from labkit.oracles.lab15.sampler import SAMPLER as ORACLE
from labkit.spec import Observation


def test_what_torch_deals_is_what_the_text_says() -> None:
    assert [len(share) for share in torchs(Split(50, 4))] == [13] * 4
    assert [len(share) for share in torchs(Split(50, 4, drop_last=True))] == [12] * 4
    assert [len(share) for share in torchs(Split(5, 8, drop_last=True))] == [0] * 8
    assert sorted(counts(torchs(Split(3, 8))).values()) == [2, 3, 3]


def test_own_seeds_miss_a_third() -> None:
    """(1 - 1/8)^8 of the samples, where each of 8 ranks takes the first eighth of its own order."""
    seen = set()
    for rank in range(8):
        seen |= set(torch.randperm(1000, generator=torch.Generator().manual_seed(rank))[:125].tolist())
    assert 1 - len(seen) / 1000 == pytest.approx((1 - 1 / 8) ** 8, abs=0.02)


def test_hidden_cases_have_a_rest_and_enough_samples_to_see_a_shuffle() -> None:
    for seed in range(50):
        even, rest, dropped, few, alone, none = sampler_cases(random.Random(seed))
        assert even.n_samples % even.world_size == 0 and rest.n_samples % rest.world_size
        assert dropped.drop_last and dropped.n_samples % dropped.world_size
        assert few.n_samples < few.world_size and none.n_samples < none.world_size and alone.world_size == 1
        assert min(case.n_samples for case in (even, rest, dropped, alone)) >= ENOUGH


@pytest.mark.parametrize("absurd", [None, "epochs", [], [[None]], [[[]] * 4] * 3, torch.zeros(2), [[["a"]] * 4] * 3])
def test_absurd_answers_fail_and_break_nothing(absurd: object) -> None:
    keys = ("epochs", "again", "resumed", "other")
    case = SAMPLER.public[0]
    got = {**dict.fromkeys(keys, absurd), "lengths": [12] * 4, "seeded": []}
    runs = [Observation(case, {}, got, {}) for case in SAMPLER.public]
    verdict = judge(SAMPLER, ORACLE, runs)
    assert verdict.outcome == "failed" and as_text(verdict)
    assert case.world_size == 4
