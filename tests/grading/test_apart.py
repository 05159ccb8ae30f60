"""The cells that ranks run first, the parts that they are fed, and what an instructor's second look runs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from grading.supervisor.apart import is_ranked, only_needed, run_all, without_apart
from grading.supervisor.cases import public_cases
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit import exercises
from labkit.compare import inputs_untouched
from labkit.observe import make_inputs, observe
from labkit.spec import Run
from labkit.tree import part_of
from tests.grading.lab98.exercises import PROGRAM, SUM, Ranks
from tests.grading.ranks import graded, ranks_server

SUMS = "def total(comm, x):\n    comm.all_reduce(y := x.clone())\n    return y"


@pytest.fixture(scope="module")
def server():
    with ranks_server() as found:
        yield found


def test_a_rank_is_fed_its_part_and_what_all_get() -> None:
    tree = {"ranks": [{"x": 1}, {"x": 2}], "scale": 3.0}
    assert part_of(tree, 1) == {"mine": {"x": 2}, "scale": 3.0}
    assert part_of({"x": 1}, 1) == {"x": 1} and part_of([1], 1) == [1]


def test_ranks_in_a_notebook_are_fed_the_same() -> None:
    seen = {}

    def program(comm, x):
        return seen.setdefault(comm.rank, x) * 0

    tree = make_inputs(PROGRAM, Ranks(), 1)
    run = observe(PROGRAM, SimpleNamespace(program=program), Ranks(), tree)
    assert run.trouble is None and inputs_untouched(run) is None
    assert [seen[rank].tolist() for rank in range(3)] == [part["x"].tolist() for part in tree["ranks"]]
    assert [got["keys"] for got in run.got["ranks"]] == [["mine", "scale"]] * 3


@pytest.mark.parametrize("culprit", [0, 2])
def test_a_changed_input_is_named_with_its_rank(culprit: int) -> None:
    def program(comm, x):
        return x.add_(1) if comm.rank == culprit else x

    run = observe(PROGRAM, SimpleNamespace(program=program), Ranks(), make_inputs(PROGRAM, Ranks(), 1))
    assert inputs_untouched(run) == f"the input `x` was changed in place on rank {culprit}"


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"ranks": [{}, {}]}, '98-program: `inputs` made 2 parts under "ranks", and the case has 3 ranks'),
        (
            {"ranks": torch.zeros(3)},
            '98-program: `inputs` made no list of parts under "ranks", and the case has 3 ranks',
        ),
        ({"mine": 1}, "98-program: an input is called `mine`, which is what each rank's own part is called"),
    ],
)
def test_parts_that_do_not_fit_are_the_authors_mistake(tree: dict, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        make_inputs(replace(PROGRAM, inputs=lambda case, gen: tree), Ranks(), 1)
    assert str(caught.value) == said


def test_one_rank_may_call_its_inputs_what_it_likes() -> None:
    alone = replace(PROGRAM, inputs=lambda case, gen: {"mine": 1, "ranks": 2}, run=Run())
    assert make_inputs(alone, Ranks(), 1) == {"mine": 1, "ranks": 2}


def test_only_the_cells_that_an_answer_needs_run_first(server) -> None:
    cells = {"a": "import torch", "b": "helper = torch.add", "c": "other = 1", "98-sum": "def total(c, x): helper"}
    steps = [RunCode(name, source) for name, source in cells.items()]
    steps += [ServeExercise("98-sum-check", "98-sum")]
    assert [step.cell_id for step in only_needed(steps, SUM)] == ["a", "b", "98-sum", "98-sum-check"]
    assert [step.cell_id for step in without_apart(steps)] == ["a", "b", "c", "98-sum"]
    assert is_ranked(SUM) and not is_ranked(exercises.find("00-warm-up"))


def test_a_cell_that_only_does_something_is_run_where_it_is_needed(server) -> None:
    """Nothing in the answer's text says that it needs the second cell."""
    effect = "import builtins\nbuiltins.add_up = lambda comm, y: comm.all_reduce(y)"
    answer = "def total(comm, x):\n    y = x.clone()\n    eval('add_' + 'up')(comm, y)\n    return y"
    assert graded(server, "import torch", effect, answer).exercises["98-sum"].outcome == "passed"


def test_a_cell_that_does_not_end_is_not_run_again(server) -> None:
    result = graded(server, "import os\nos._exit(0)", SUMS)
    assert result.cells["c0"].skipped and result.exercises["98-sum"].outcome == "passed"


def test_a_missing_answer_is_told_from_its_cell(server) -> None:
    found = graded(server, "1 / 0\n" + SUMS).exercises["98-sum"].public
    assert dict(found.rows)["problem"] == "its cell failed: ZeroDivisionError: division by zero"
    assert (
        graded(server, "raise NotImplementedError('Write your answer here.')").exercises["98-sum"].outcome
        == "unanswered"
    )


def test_a_second_look_runs_ranks_too(server) -> None:
    steps = [RunCode("98-sum", SUMS)]
    steps += [ServeExercise("98-sum-check", "98-sum")]
    found = run_all(server, steps, {"98-sum": public_cases(SUM)})
    assert [run.trouble for run in found.exercises["98-sum"]] == [None, None]
    assert found.cells["98-sum"].ok and found.exercises["98-sum"][0].measured["collectives"] == 1
