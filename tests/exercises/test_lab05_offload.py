"""Lab 05: the figures that the notebook quotes, and what the judge makes of a program that was tampered with."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from labkit import exercises
from labkit.check.judge import judge
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.spec import Observation
from tests.exercises.harness import answers_in, solution_of

IDS = ("05-offload", "05-stream-weights")


def observed(exercise_id: str) -> Observation:
    """The solution on the first public case."""
    exercise = exercises.find(exercise_id)
    answers = gather_answers(exercise, answers_in(exercise_id, solution_of(exercise_id)))
    return observe(exercise, answers, exercise.public[0], make_inputs(exercise, exercise.public[0], 1))


def verdict_on(exercise_id: str, run: Observation):
    return judge(exercises.find(exercise_id), oracle_of(exercise_id), [run])


def test_the_quoted_numbers_of_tokens() -> None:
    tokens_to_hide = answers_in(IDS[1], solution_of(IDS[1]))["tokens_to_hide"]
    assert tokens_to_hide(2, 71e12, 3.9e9) == pytest.approx(18_205, abs=1)
    assert tokens_to_hide(2, 989e12, 55e9) == pytest.approx(17_982, abs=1)
    assert tokens_to_hide(4, 2e9, 0.1e9) == 40


@pytest.mark.parametrize(("flops_per_s", "link_bytes_per_s", "width"), [(71e12, 25e9, 5680), (989e12, 55e9, 35_964)])
def test_the_quoted_widths(flops_per_s: float, link_bytes_per_s: float, width: int) -> None:
    """Where the copies of a layer's two activations take as long as its forward pass, in two bytes per number."""
    n_tokens = 1000
    copy_s = 2 * 2 * n_tokens * width / link_bytes_per_s
    assert copy_s == pytest.approx(2 * n_tokens * width**2 / flops_per_s, rel=1e-3)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("exercise_id", IDS)
def test_what_nobody_would_return_is_no_value_and_no_crash(exercise_id: str) -> None:
    run = observed(exercise_id)
    assert verdict_on(exercise_id, run).passed
    for absurd in (
        None,
        [],
        "x",
        float("nan"),
        torch.full((3,), torch.nan),
        -1,
        [{"kind": "kernel"}],
        [{}],
        [None],
        {},
    ):
        for key in run.got:
            assert verdict_on(exercise_id, replace(run, got={**run.got, key: absurd})).score == 0, (key, absurd)
        assert verdict_on(exercise_id, replace(run, got=absurd)).score == 0


def without(kind: str):
    return lambda commands: [one for one in commands if one["kind"] != kind]


def halved(kind: str):
    return lambda commands: [{**one, "nbytes": one["nbytes"] // 2} if one["kind"] == kind else one for one in commands]


def freed_at_once(commands: list[dict]) -> list[dict]:
    """Say of every block that it is freed right after the command that first writes to it."""
    lied, freed = [], set()
    for one in commands:
        lied.append(one)
        if one["kind"] in ("kernel", "copy"):
            new = [block for block in one.get("writes", []) if block not in freed]
            freed.update(new)
            lied += [{"kind": "free", "block": block} for block in new]
    return lied


@pytest.mark.parametrize("exercise_id", IDS)
@pytest.mark.parametrize(
    "tamper",
    [
        without("alloc"),
        without("wait"),
        without("record"),
        without("copy"),
        without("kernel"),
        halved("alloc"),
        halved("copy"),
        freed_at_once,
        lambda commands: [],
        lambda commands: commands * 2,
        lambda commands: commands * 40,
    ],
)
def test_a_program_that_was_tampered_with_earns_nothing(exercise_id: str, tamper) -> None:
    run = observed(exercise_id)
    lied = {**run.got, "commands": tamper(run.got["commands"])}
    assert verdict_on(exercise_id, replace(run, got=lied)).score == 0


@pytest.mark.parametrize("exercise_id", IDS)
def test_what_comes_before_the_work_cannot_be_made_to_hide_it(exercise_id: str) -> None:
    run = observed(exercise_id)
    for n_before in (0, len(run.got["commands"]) // 2, len(run.got["commands"])):
        lied = {**run.got, "n_before": n_before}
        assert verdict_on(exercise_id, replace(run, got=lied)).score == 0, n_before
