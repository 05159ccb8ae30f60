"""Lab 20: what 20-budget says beside points: hours, the loss and its margin, and nothing that a script does already."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grading.supervisor.result import ExerciseResult
from labkit.capstone import ghosts, read
from labkit.capstone.entry import Entry
from labkit.check.diagnosis import explanation
from labkit.check.verdict import Verdict
from labkit.exercises.lab20.budget import BUDGET as EXERCISE
from labkit.material.lab20_knobs import script_with
from labkit.oracles.lab20 import budget_entry
from labkit.oracles.lab20.budget import BUDGET
from labkit.spec import CaseRun
from tests.exercises.harness import solution_of

pytestmark = pytest.mark.lab("20")


def some(losses: dict[str, float], hours: float = 0.15, **more: object) -> Entry:
    silver = ghosts()["basement"]["silver"]
    return replace(silver, losses=losses, virtual_hours=hours, digest="mine", **more)


@pytest.fixture
def run_of(monkeypatch):
    """A run of a script whose try comes to this entry."""

    def made(found: Entry, text: str = "", kind: str = "") -> CaseRun:
        monkeypatch.setattr(budget_entry, "entry_of", lambda got: found)
        script = {"uses": read(text or solution_of("20-budget")).uses}
        return CaseRun(EXERCISE.public[0], {"seeds": [1]}, {"kind": kind, "problem": kind, "script": script})

    return made


def test_hours_step_and_loss_are_told_and_a_loss_too_near_the_target_is_warned_of(run_of) -> None:
    rows = dict(budget_entry.came_to([run_of(some({"1": 1.44}, step_ms=1766.0, declared_steps=200))]))
    assert rows["hours"] == "0.15 virtual hours: 200 steps of 1.77 s"
    assert rows["loss"] == "1.440 nats per token, the target 1.6; languages differ by about 0.15: leave that much"
    near = dict(budget_entry.came_to([run_of(some({"1": 1.44, "2": 1.59}))]))["loss"]
    assert near.startswith("1.590 nats") and "may miss the target on the three others" in near


def test_a_failure_names_no_language_by_its_seed(run_of) -> None:
    run = run_of(some({"185196216011": 1.5, "7": 1.613}, reached=False))
    assert budget_entry.reaches_the_target(run) == (
        "language 2 of 2: the loss is 1.613 nats per token after training, the target 1.6"
    )
    assert "differ by about 0.15" in explanation(BUDGET, [run])
    alone = run_of(some({"7": 1.613}, reached=False))
    assert budget_entry.reaches_the_target(alone).startswith("the loss is 1.613")
    assert "does not learn enough" in explanation(BUDGET, [alone])


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ((), "products are in float32"),
        (("bf16",), "Eager attention"),
        (("bf16", "fused", "checkpoint"), "recompute less"),
        (("bf16", "fused"), "Nothing is recomputed"),
    ],
)
def test_a_script_that_counts_is_told_of_what_it_does_not_do_yet(run_of, knobs: tuple[str, ...], said: str) -> None:
    run = run_of(some({"1": 1.4}), script_with(knobs))
    assert said in explanation(BUDGET, [run])


@pytest.mark.parametrize(
    ("knobs", "largest", "said"),
    [
        ((), "activations", "scores"),
        (("fused",), "activations", "kit.checkpoint"),
        (("fused", "checkpoint"), "activations", "kit.chunked_loss"),
        (("fused", "checkpoint", "chunked"), "activations", "Take fewer sequences"),
        ((), "optimizer", "kit.AdamW8bit"),
        (("8-bit",), "optimizer", "2 bytes for each parameter. `kit.Adafactor`"),
        ((), "gradients", "in 16 bits"),
        (("bf16",), "gradients", "kit.step_in_backward"),
        (("bf16", "in backward"), "gradients", "all sequences at once"),
        ((), "parameters", "run.model(dtype=...)"),
        ((), "temporaries", "for a moment"),
    ],
)
def test_a_script_that_does_not_fit_is_told_of_what_it_does_not_do_yet(
    run_of, knobs: tuple[str, ...], largest: str, said: str
) -> None:
    run = run_of(some({}, peak_bytes={largest: 2**34}, fits=False, reached=False), script_with(knobs), "memory")
    hint = explanation(BUDGET, [run])
    assert f"The largest part of the peak is {largest}." in hint and said in hint


def test_a_student_reads_what_the_public_case_came_to_and_nothing_of_hidden_ones() -> None:
    def verdict(score: float, text: str) -> Verdict:
        return Verdict("20-budget", "passed" if score else "failed", score, "", (("loss", text),), None, (), 1, 1)

    public = verdict(1.0, "public")
    assert ExerciseResult(public, verdict(0.5, "hidden")).shown.rows == (("loss", "public"),)
    assert ExerciseResult(public, verdict(0.0, "hidden")).shown.rows == ()
