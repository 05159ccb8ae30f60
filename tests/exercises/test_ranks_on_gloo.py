"""Every solution of several ranks on real ones: the values that a check wants, and the traffic, counted alike.

What they are on simulated ranks and on the grader's routed ones is `test_answers.py`'s and `tests/grading`'s.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from labkit import exercises
from labkit.check.judge import judge
from labkit.check.text import as_text
from labkit.measures import of_ranks
from labkit.observe import gather_answers, make_inputs, n_ranks, observe, observe_rank, public_seed
from labkit.oracles import oracle_of
from labkit.ranks import Comm, measure_ranks
from labkit.ranks.traffic import figures
from labkit.spec import Case, Exercise, Observation
from labkit.tree import part_of
from tests.exercises.harness import answers_in, solution_of

REPEATS = int(os.environ.get("LABS_GLOO_REPEATS", "1"))
"""So often the solutions from lab 15 on are run again: 50 finds what fails in one run of fifty."""
RANKED = [name for name, one in exercises.everything().items() if one.run.ranks != 1 and name < "90"]
SENT = ("bytes_sent", "bytes_total", "messages", "messages_total", "collectives", "rounds")
"""What is counted of real ranks as of simulated ones, however they are scheduled."""
pytestmark = [pytest.mark.full("ranks"), pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")]


def on_gloo(exercise: Exercise, answers: SimpleNamespace, case: Case, index: int) -> Observation:
    """As `labkit.observe.observe`, with a process for each rank."""
    tree = make_inputs(exercise, case, public_seed(exercise.id, index))

    def rank(comm: Comm) -> Observation:
        return observe_rank(exercise, answers, case, part_of(tree, comm.rank), comm)

    cluster = exercise.run.cluster(case) if exercise.run.cluster else None
    runs, traffic = measure_ranks(rank, n_ranks(exercise, case), "gloo", cluster=cluster)
    assert [run.trouble for run in runs] == [None] * len(runs)
    measured = of_ranks(run.measured for run in runs)
    got, back = ({"ranks": [getattr(run, part) for run in runs]} for part in ("got", "back"))
    return Observation(case, tree, got, back, measured | figures(traffic), moments=traffic.moments)


def test_the_labs_have_such_exercises() -> None:
    assert {"14-naive", "14-tree", "14-butterfly", "14-ring", "14-reduce-scatter", "14-hierarchical"} < set(RANKED)
    assert {"15-ddp", "15-no-sync", "15-amp-clip", "15-sync-bn"} < set(RANKED)
    assert {"16-zero1", "16-zero2", "16-fsdp-unit", "16-fsdp", "16-clip"} < set(RANKED)
    assert {"17-tp-mlp", "17-tp-attention", "17-sequence-parallel"} < set(RANKED)
    assert "18-pipeline-step" in RANKED
    assert {"17-vocab-loss", "17-vocab-embedding", "17-mend"} < set(RANKED)


def times(name: str) -> int:
    return REPEATS if name >= "15" else 1


@pytest.mark.parametrize(("name", "number"), [(name, number) for name in RANKED for number in range(times(name))])
def test_the_solution_passes_and_sends_what_it_sends_on_simulated_ranks(name: str, number: int) -> None:
    exercise = exercises.find(name)
    answers = gather_answers(exercise, answers_in(name, solution_of(name)))
    runs = [on_gloo(exercise, answers, case, index) for index, case in enumerate(exercise.public)]
    verdict = judge(exercise, oracle_of(name), runs)
    assert verdict.outcome == "passed", as_text(verdict)
    for run in runs:
        simulated = observe(exercise, answers, run.case, run.tree)
        assert simulated.trouble is None
        for figure in SENT:
            assert run.measured[figure] == simulated.measured[figure], f"{figure} of {run.case}"
