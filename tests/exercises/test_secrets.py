"""Whatever the course's key draws: a right answer passes, and a mistake that few inputs show is found.

One key each is tried in test_answers.py.
"""

from __future__ import annotations

import pytest

from grading.demo.examples import example, examples
from grading.hidden import Secret
from labkit import exercises
from labkit.check.text import as_text
from tests.exercises.harness import CaseSet, hidden_verdict, solution_of

TAKES_ITS_TIME = "15-launch"
"""Starts processes for each answer; that its own judge passes what 20 keys draw is tried beside it."""
N_KEYS, N_KEYS_OF_KERNELS = 20, 3
"""What is compiled and run on the interpreter draws shapes and little else."""
TRAINS, N_KEYS_OF_TRAININGS = "20-budget", 2
"""Trains for 20 seconds for each key; how far from its target it ends on others, tests/capstone/test_margin.py says."""
HARD_TO_TELL = (
    "02-sums/compares_values_not_magnitudes",
    "02-sums/sorted_by_value",
    "02-sums/pairwise_loses_the_odd_element",
    "02-sums/kahan_called_neumaier",
    "02-merge-smallest/sorts_once_and_adds_in_a_row",
    "02-stochastic-rounding/noise_of_half_a_step",
    "02-blocked-sum/blocks_summed_in_fp16",
    "05-checkpoint/generator_left_behind",
    "05-checkpoint/no_rng_restore",
    "05-checkpoint/pool_made_in_the_first_call",
    "05-segments/rounds_down",
    "05-segments/more_segments_than_layers",
    "05-segments/last_segment_takes_the_rest",
    "05-low-memory/caches_one_in_the_middle",
    "05-find-the-leak/hook_keeps_numpy_copies",
    "05-chunked-loss/mean_of_chunk_means",
    "05-chunked-loss/probabilities_beside_the_logits",
    "08-lora-linear/scale_forgotten_in_merge",
    "08-lora-linear/drops_the_middle",
    "08-inject/strict_is_false",
    "08-inject/matches_the_end_of_a_name",
    "08-inject/saves_live_tensors",
    "08-inject/copies_while_it_looks",
    "08-nf4/mean_stays",
    "08-nf4/scales_cut",
    "08-nf4/half_precision_scales",
    "08-nf4/next_lower_code",
    "08-frozen-nf4/saves_the_input",
    "08-frozen-nf4/gradient_transposed",
    "11-backend/last_count_only",
    "11-recompiles/float_count",
    "11-break-even/one_like_others",
    "11-break-even/place_in_the_log",
    "11-lazy-tensor/names_in_the_key",
    "11-lazy-tensor/one_cache_for_all_devices",
)
pytestmark = [pytest.mark.full("answers"), pytest.mark.timeout(900)]


def of_its_lab(names: list[str] | tuple[str, ...]) -> list:
    return [pytest.param(name, marks=pytest.mark.lab(name[:2])) for name in names]


def key(number: int) -> Secret:
    return Secret(f"course key {number}".encode(), "lab", "ada", "first")


def _n_keys(exercise_id: str) -> int:
    if exercise_id == TRAINS:
        return N_KEYS_OF_TRAININGS
    return N_KEYS_OF_KERNELS if "compiled" in exercises.find(exercise_id).meters else N_KEYS


@pytest.mark.later
@pytest.mark.parametrize("exercise_id", of_its_lab([name for name in exercises.everything() if name != TAKES_ITS_TIME]))
def test_right_answers_pass_whatever_the_secret(exercise_id: str) -> None:
    """Neither a tolerance nor a budget is lucky: the solution and the unusual right answers."""
    sources = [solution_of(exercise_id), *(right.source for right in examples("right", exercise_id))]
    for number in range(_n_keys(exercise_id)):
        cases = CaseSet(exercise_id, key(number))
        for source in sources:
            verdict = cases.verdict(cases.runs(source))
            assert verdict.outcome == "passed", (number, as_text(verdict))


@pytest.mark.parametrize("name", of_its_lab(HARD_TO_TELL))
def test_a_subtle_mistake_is_found_whatever_the_secret(name: str) -> None:
    wrong = example("wrong", name)
    for number in range(4):
        verdict = hidden_verdict(wrong.exercise, wrong.source, key(number))
        assert verdict.score == 0
        assert wrong.hint in verdict.hint
