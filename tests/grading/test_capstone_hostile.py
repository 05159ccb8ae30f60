"""Cheats at the capstone's game, handed in to the grader on two tiers: none earns a point.

A script's text is run where no cell of the notebook has been, so a cell that patches the engine reaches nothing. The
control is the same cell beside an honest script, which gets full marks; and the patch does work where it is made.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from grading.supervisor import Sandbox
from grading.supervisor.result import ExerciseResult
from grading.worker.protocol.steps import ServeExercise
from tests.exercises.harness import TESTS, solution_of
from tests.grading.shared_sandboxes import shared_sandbox
from tests.grading.test_worker import code, graded
from tests.lanes import DEFAULT_TIER, require_tier

pytestmark = [pytest.mark.full("attacks"), pytest.mark.timeout(900)]

SCRIPTS = {
    "asks_for_the_evaluation": "`._language`",
    "branches_on_the_size": "operation",
    "does_nothing_in_every_other_step": "step",
    "goes_through_one_block_alone": "products with weights",
    "makes_a_tensor_of_its_own_kind": "a class of a script",
    "parks_weights_in_numpy": "`.numpy`",
    "patches_the_loss": "cannot be set",
    "reports_a_loss_of_its_own": "line",
    "stops_before_the_declared_steps": "step",
    "tells_the_meter_that_tensors_are_empty": "`.numel`",
    "trains_in_setup": "outside of `step`",
    "trains_on_the_first_tokens": "products with weights",
    "updates_the_first_rows": "leaves weights as they were",
    "works_only_without_data": "in step",
}
"""Of tests/wrong/20-budget, and a part of what is found out about each."""

PATCHES = """
import sys
import labkit.capstone
from labkit.capstone.language import Language
cost, play, score = (sys.modules["labkit.capstone." + name] for name in ("cost", "play", "score"))
cost._moved_bytes = lambda *_: 0
cost.flop_formula = lambda *_: None
play._check_bill = play._check_sizes = play._check_work = play._check_steps = lambda *_: None
play.TARGET_LOSS = score.TARGET_LOSS = 9.9
Language.given, Language.sentences = Language.sentences, lambda self, n, _: self.given(n, 0)
train = play.train_tiny
play.train_tiny = lambda script, seed, machine=None: train(script, 11, machine)
"""
"""A blind meter, no rules, the sentences of the evaluation to train on, and one seed for all."""

TRIED_THERE = """
from pathlib import Path
from labkit.capstone import bill, read
print(bill(read(Path({path!r}).read_text())).step_s)
"""


def wrong(name: str) -> str:
    return (TESTS / "wrong" / "20-budget" / f"{name}.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=[DEFAULT_TIER, "kernel"])
def sandbox(request) -> Sandbox:
    return shared_sandbox(require_tier(request.param))


def found(sandbox: Sandbox, script: str, *cells: str) -> ExerciseResult:
    steps = [code(f"c{n}", source) for n, source in enumerate(cells)]
    check = ServeExercise("20-budget-check", "20-budget", {"STEPS": script})
    return graded(sandbox, *steps, check).exercises["20-budget"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_cheats_earns_nothing(sandbox, name: str) -> None:
    result = found(sandbox, wrong(name))
    assert (result.outcome, result.score) == ("failed", 0), result
    assert SCRIPTS[name] in dict(result.public.rows)["problem"], result.public.rows


def test_a_cell_that_patches_the_engine_reaches_nothing(sandbox) -> None:
    for name, said in (("does_not_fit_as_written", "the peak is"), ("learns_too_little", "the loss is")):
        result = found(sandbox, wrong(name), PATCHES)
        assert (result.outcome, result.score) == ("failed", 0), result
        assert said in dict(result.public.rows)["problem"]
    honest = found(sandbox, solution_of("20-budget"), PATCHES)
    assert (honest.outcome, honest.score) == ("passed", 1), honest


def test_the_patch_does_work_in_its_own_process() -> None:
    """The control: without what the grader does, the meter would be blind."""
    path = str(TESTS / "wrong" / "20-budget" / "learns_too_little.py")
    look = PATCHES + TRIED_THERE.format(path=path)
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=300, check=True)
    assert float(done.stdout) == 0.0
