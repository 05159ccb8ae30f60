"""What lab 05's first half promises beyond the answers in tests/wrong and tests/right, and the figures of its text."""

from __future__ import annotations

import random

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from grading.hidden import Secret
from grading.hidden.lab05.segments import segments_cases
from labkit import exercises
from labkit.exercises.lab05 import selective
from labkit.exercises.lab05.low_memory import Tower
from labkit.exercises.lab05.segments import Depth
from labkit.observe import make_inputs
from labkit.oracles.lab05 import low_memory, segments
from labkit.oracles.lab05 import selective as kept
from tests.exercises.harness import TESTS, answers_in, hidden_verdict, solution_of

HARD_TO_TELL = (
    "05-checkpoint__generator-left-behind",
    "05-checkpoint__no-rng-restore",
    "05-checkpoint__pool-made-in-the-first-call",
    "05-segments__rounds-down",
    "05-segments__more-segments-than-layers",
    "05-segments__last-segment-takes-the-rest",
    "05-low-memory__caches-one-in-the-middle",
    "05-find-the-leak__hook-keeps-numpy-copies",
    "05-chunked-loss__mean-of-chunk-means",
    "05-chunked-loss__probabilities-beside-the-logits",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", HARD_TO_TELL)
def test_a_subtle_mistake_is_found_whatever_the_secret(name: str) -> None:
    source = (TESTS / "wrong" / f"{name}.py").read_text()
    for attempt in range(4):
        verdict = hidden_verdict(name.split("__")[0], source, Secret(b"another key", "05", "grace", str(attempt)))
        assert verdict.score == 0
        assert source.splitlines()[0].removeprefix("# ") in verdict.hint


def test_the_runs_of_a_layer_add_up_to_half_a_square() -> None:
    assert [low_memory.wanted_forwards(Tower(n)) for n in (1, 2, 3, 24)] == [1, 3, 6, 300]


def test_the_figures_of_the_text_about_segments() -> None:
    best = answers_in("05-segments", solution_of("05-segments"))["best_segments"]
    assert (best(36, 4.0), best(32, 17.0), best(36, 1.0), best(16, 2.0), best(48, 14.0)) == (12, 23, 6, 6, 26)
    peaks = [round(segments.peak(Depth(32, 17.0, 1), k)) for k in (1, 23, 32)]
    assert peaks == [545, 47, 49]


def test_hidden_depths_have_the_larger_and_the_smaller_neighbour_of_the_root() -> None:
    for seed in range(20):
        roots = [
            (segments.best(case), (case.cost * case.n_layers) ** 0.5) for case in segments_cases(random.Random(seed))
        ]
        assert any(best == int(root) + 1 for best, root in roots)
        assert any(best == int(root) for best, root in roots)


def test_the_flops_allowed_are_those_of_a_step_without_a_checkpoint() -> None:
    case = selective.Network()
    tree = make_inputs(exercises.find("05-selective"), case, 1)
    leaves = selective.leaves_of(tree, torch.device("cpu"))
    with FlopCounterMode(display=False) as counter:
        selective.backward(selective.forward(selective.plain, case, leaves), leaves)
    assert counter.get_total_flops() == kept.flops(case, tree)
