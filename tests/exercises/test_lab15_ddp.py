"""Lab 15: what the notebook quotes comes out of the solution, and what ranks that do not fit together are told."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch

from grading.demo.examples import SOLUTIONS, example
from labkit import exercises
from labkit.check.judge import judge
from labkit.check.text import as_text
from labkit.exercises.lab15.ddp import Job
from labkit.material.lab15 import Timeline, timeline
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.oracles.lab15.sync_bn_mistakes import var
from labkit.spec import Observation
from tests.exercises.harness import answers_in, public_verdict, solution_of

IDS = ("15-ddp", "15-no-sync", "15-amp-clip", "15-sync-bn")
JOB = Job(n_ranks=4, n_blocks=12, n_steps=1)


def step(cap_blocks: float) -> Timeline:
    answers = answers_in("15-ddp", solution_of("15-ddp"))
    return timeline(answers["DDP"], answers["train_step"], replace(JOB, cap_blocks=cap_blocks))


def wrong_ddp(*changes: tuple[str, str]) -> str:
    source = solution_of("15-ddp")
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return source


def test_the_timelines_of_four_caps() -> None:
    seconds = {cap: step(cap) for cap in (0.01, 1, 3, 100)}
    assert {cap: round(1e3 * one.step_s) for cap, one in seconds.items()} == {0.01: 210, 1: 137, 3: 143, 100: 164}
    assert [len(one.reduces) for one in seconds.values()] == [27, 13, 5, 1]
    assert all(one.backward_s == 0.12 and len(one.backward) == 12 for one in seconds.values())


def test_the_opening() -> None:
    """Four cards that do the work of one and a half, and as many milliseconds as the summary shows."""
    text = (SOLUTIONS / "15_ddp.py").read_text()
    namespace = answers_in("15-ddp", text[text.index("class OneByOne") :].partition("\n# %%")[0])
    step = namespace["one_by_one"]
    busy = sorted([*step.backward, *(span[:2] for span in step.reduces)])
    assert all(end_s <= start_s + 1e-9 for (_, end_s), (start_s, _) in itertools.pairwise(busy)), "they take turns"
    assert round(1e3 * step.step_s) == 308 and 1.5 <= namespace["work"] <= 1.6


def test_an_all_reduce_of_one_block_takes_9_ms_of_which_6_are_latency() -> None:
    """2 (n - 1) (alpha + B / (n b)), as in the text."""
    start_s, end_s, n_bytes = step(1).reduces[0]
    assert n_bytes == JOB.block_bytes and end_s - start_s == pytest.approx(9e-3)
    latency_s = 2 * (JOB.n_ranks - 1) * 1e-3
    assert latency_s == pytest.approx(6e-3)


def test_the_bytes_of_all_calls_are_those_of_the_gradients() -> None:
    # Twelve blocks, the shared weight, and a layer of 3 x 3 and 3 that nobody calls.
    total = 12 * JOB.block_bytes + 4 * (12 * JOB.width + 12)
    assert [sum(n_bytes for *_, n_bytes in step(cap).reduces) for cap in (1, 100)] == [total, total]


def test_the_predictions() -> None:
    assert var(torch.tensor([[0.0], [2], [10], [12]])).item() == 26 and var(torch.tensor([[0.0], [2]])).item() == 1
    together = 1 - 0.999**64
    assert round(100 * together, 1) == 6.2 and round(1000 * together) == 62 and round(1 / together) == 16
    assert 2 * 7e9 * 2 / 1e9 == 28 and round(28e9 / 2**30) == 26
    assert 8 * 28 == 224 and round(224e9 / 2**30) == 209


def told(source: str, case: Job) -> str:
    """What a run of this case is stopped by."""
    exercise = exercises.find("15-ddp")
    answers = gather_answers(exercise, answers_in("15-ddp", source))
    return observe(exercise, answers, case, make_inputs(exercise, case, 1)).trouble.text


def test_buckets_of_different_sizes_in_different_orders_are_told() -> None:
    """Each rank sends what is complete: rank 1 skips the first block, and its bucket leaves at the very end."""
    source = example("wrong", "15-ddp/sends_what_is_ready").source
    text = told(source, Job(n_blocks=3, odd_ranks_skip=0, cap_blocks=0.5))
    assert "all_reduce: rank 0 gives float32 of shape (272,) and rank 1 float32 of shape (192,)" in text


def test_a_gradient_that_is_not_there_is_told() -> None:
    zeros = "torch.zeros_like(p) if p.grad is None else p.grad"
    text = told(wrong_ddp((zeros, "p.grad")), Job())
    assert "'NoneType' object has no attribute 'flatten'" in text


def test_a_rank_that_sends_alone_is_told() -> None:
    more = "while len(self.flights) < len(self.buckets):"
    alone = f"while self.comm.rank == 0 and {more.removeprefix('while ')}"
    text = told(wrong_ddp((more, alone)), Job(n_steps=1))
    assert text == "deadlock: rank 0 waits in all_reduce for rank 1, which has finished"


@pytest.mark.parametrize("exercise_id", IDS)
@pytest.mark.parametrize(
    "got", [None, {}, {"ranks": []}, {"ranks": [None] * 4}, {"ranks": [{"out": math.nan}] * 2}, "x"]
)
def test_no_absurd_result_passes_or_crashes(exercise_id: str, got: object) -> None:
    exercise = exercises.find(exercise_id)
    case = exercise.public[0]
    tree = make_inputs(exercise, case, 1)
    verdict = judge(exercise, oracle_of(exercise_id), [Observation(case, tree, got, None, {"seconds": 0.0})], n_cases=1)
    assert verdict.score == 0 and not verdict.passed


def test_time_that_was_never_spent_is_not_believed() -> None:
    """Whoever stops the clock of the backward passes does not pass for it."""
    source = solution_of("15-ddp").replace(
        "self.module, self.comm = module, comm", "self.module, self.comm = module, comm\n        module.comm = None"
    )
    text = " ".join(as_text(public_verdict("15-ddp", source)).split())
    assert "broadcast and backward passes take at least 166 ms" in text, text
