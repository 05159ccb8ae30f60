"""Lab 14's all-reduce over nodes graded in earnest, up to twelve ranks as processes: what crosses nodes is the router's
own count, on the nodes of the case."""

from __future__ import annotations

import pytest

from grading.demo.examples import example
from grading.supervisor import Job, grade_job
from grading.supervisor.result import ExerciseResult
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit.check.text import as_text
from tests.exercises.harness import solution_of
from tests.grading.ranks import ranks_server

EXERCISE = "14-hierarchical"
IMPORTS = (
    "from collections.abc import Sequence\n\nimport torch\nfrom torch import Tensor\n\nfrom labkit.ranks import Comm\n"
)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    with ranks_server() as found:
        yield found


def graded(server, source: str) -> ExerciseResult:
    steps = (
        RunCode("setup", IMPORTS),
        RunCode(EXERCISE, source),
        ServeExercise(f"{EXERCISE}-check", EXERCISE),
    )
    result = grade_job(server, Job("14_collectives", "ada", "1", steps, (IMPORTS, source), (), b"key"))
    return result.exercises[EXERCISE]


@pytest.mark.parametrize(
    "source", [solution_of(EXERCISE), example("right", f"{EXERCISE}/leaders").source], ids=["solution", "leaders"]
)
def test_right_answers_pass(server, source: str) -> None:
    result = graded(server, source)
    for verdict in (result.public, result.hidden):
        assert verdict.outcome == "passed", as_text(verdict)


@pytest.mark.parametrize("name", ["flat_ring", "one_part_after_the_other", "own_node_only"])
def test_what_fails_on_the_simulator_fails_here_with_the_same_hint(server, name: str) -> None:
    wrong = example("wrong", f"{EXERCISE}/{name}")
    verdict = graded(server, wrong.source).public
    assert verdict.score == 0 and wrong.hint in (verdict.hint or ""), as_text(verdict)
