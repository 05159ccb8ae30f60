"""What lab 05's first half promises beyond the answers in tests/wrong and tests/right, and the figures of its text."""

from __future__ import annotations

import random

import torch
from torch.utils.flop_counter import FlopCounterMode

from grading.hidden.lab05.segments import segments_cases
from labkit import exercises
from labkit.exercises.lab05 import selective
from labkit.exercises.lab05.low_memory import Tower
from labkit.exercises.lab05.segments import Depth
from labkit.observe import make_inputs
from labkit.oracles.lab05 import low_memory, segments
from labkit.oracles.lab05 import selective as kept
from labkit.spec import CaseRun
from tests.exercises.harness import answers_in, solution_of


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
    assert counter.get_total_flops() == kept.flops(CaseRun(case, tree))
