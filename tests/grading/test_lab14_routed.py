"""Lab 14 graded as it is in earnest, each rank a process: right answers pass, and nothing goes past the network."""

from __future__ import annotations

import pytest

from grading.supervisor import Job, Sandbox, grade_job
from grading.supervisor.apart import ONLY_TOGETHER
from grading.supervisor.result import ExerciseResult
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit.check.text import as_text
from tests.exercises.harness import public_verdict, solution_of
from tests.grading.ranks import ranks_server

IDS = ("14-naive", "14-tree", "14-butterfly", "14-ring", "14-reduce-scatter")
IMPORTS = "import torch\nfrom torch import Tensor\nfrom labkit.ranks import Comm\n"
ZEROS_AND_A_GLOBAL = """
table = {}


def naive_all_reduce(comm, x):
    table[comm.rank] = x
    zeros, got = torch.zeros_like(x), torch.empty_like(x)
    if comm.rank > 0:
        comm.send(zeros, 0)
        comm.recv(got, 0)
    else:
        for other in range(1, comm.world_size):
            comm.recv(got, other)
        for other in range(1, comm.world_size):
            comm.send(zeros, other)
    total = torch.zeros_like(x)
    for rank in range(comm.world_size):
        total += table.get(rank, zeros)
    return total
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    with ranks_server() as found:
        yield found


def graded(server: Sandbox, exercise_id: str, source: str) -> ExerciseResult:
    """The result of a submission that answers this exercise alone."""
    steps = (
        RunCode("setup", IMPORTS),
        RunCode(exercise_id, source),
        ServeExercise(f"{exercise_id}-check", exercise_id),
    )
    result = grade_job(server, Job("14_collectives", "ada", "1", steps, (IMPORTS, source), (), b"key"))
    return result.exercises[exercise_id]


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_solution_passes(server, exercise_id: str) -> None:
    result = graded(server, exercise_id, solution_of(exercise_id))
    for verdict in (result.public, result.hidden):
        assert verdict.outcome == "passed", as_text(verdict)


def test_zeros_sent_and_values_in_a_global_variable(server) -> None:
    """Threads of one process share the variable; the processes that are graded do not."""
    assert public_verdict("14-naive", ZEROS_AND_A_GLOBAL).passed
    verdict = graded(server, "14-naive", ZEROS_AND_A_GLOBAL).public
    assert verdict.score == 0
    assert verdict.hint == ONLY_TOGETHER, as_text(verdict)
