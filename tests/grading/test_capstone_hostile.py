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
from tests.grading.steps import code, graded
from tests.lanes import DEFAULT_TIER, require_tier

pytestmark = [pytest.mark.full("attacks"), pytest.mark.timeout(900)]

SCRIPTS = {
    "adds_a_weight_of_its_own": "`scale` is not the weight",
    "asks_for_the_evaluation": "`._language`",
    "attends_to_its_neighbours": "products in attention",
    "branches_on_the_size": "operation",
    "counts_its_runs_in_a_class": "cannot be set",
    "counts_words_in_python": "a value is read",
    "does_nothing_in_every_other_step": "step",
    "goes_through_one_block_alone": "products with weights",
    "hands_gradients_over_in_a_class": "cannot be set",
    "hands_gradients_over_in_a_function": "cannot be set",
    "hides_its_weights": "leaves weights as they were",
    "keeps_moments_from_the_third_step_on": "are billed",
    "keeps_moments_on_another_device": "another device, lazy",
    "keeps_moments_where_tensors_hold_data": "are billed",
    "makes_a_tensor_of_its_own_kind": "a class of a script",
    "multiplies_for_nobody": "is not trained",
    "parks_weights_in_numpy": "`.numpy`",
    "patches_a_class_by_another_name": "cannot be set",
    "patches_the_loss": "cannot be set",
    "puts_copies_aside_for_the_last_step": "are billed",
    "reads_one_row_while_it_is_billed": "(expanded)",
    "reports_a_loss_of_its_own": "line",
    "saves_in_8_bits_where_the_model_is_large": "int8",
    "shares_moments_where_the_model_is_large": "other tensors' memory",
    "stops_before_the_declared_steps": "step",
    "sums_over_cards_where_the_model_is_tiny": "all_reduce",
    "takes_more_tokens_on_the_last_card": "sequences",
    "tells_the_meter_that_tensors_are_empty": "`.numel`",
    "trains_first_where_the_model_is_tiny": "setup: ",
    "trains_in_setup": "outside of `step`",
    "trains_on_in_one_late_step": "of training",
    "trains_on_the_first_tokens": "products with weights",
    "trains_where_tensors_hold_no_data": "of training",
    "updates_a_corner": "not as the model grows",
    "updates_one_block_and_sums_over_one_card": "leaves weights as they were",
    "updates_the_first_half_twice": "leaves weights as they were",
    "updates_the_first_rows": "leaves weights as they were",
    "updates_what_lies_in_one_memory_in_part": "leaves weights as they were",
    "works_only_without_data": "a value is read",
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
