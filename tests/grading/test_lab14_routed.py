"""Lab 14 graded as it is in earnest, each rank a process: right answers pass, and nothing goes past the network."""

from __future__ import annotations

import pytest

from grading.supervisor.apart import ONLY_TOGETHER
from labkit.check.text import as_text
from tests.exercises.harness import public_verdict, solution_of
from tests.grading.routed_answers import assert_passes, graded, routed_sandbox

IDS = ("14-naive", "14-tree", "14-butterfly", "14-ring", "14-reduce-scatter")
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
    return routed_sandbox()


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_solution_passes(server, exercise_id: str) -> None:
    assert_passes(server, exercise_id, solution_of(exercise_id))


def test_zeros_sent_and_values_in_a_global_variable(server) -> None:
    """Threads of one process share the variable; the processes that are graded do not."""
    assert public_verdict("14-naive", ZEROS_AND_A_GLOBAL).passed
    verdict = graded(server, "14-naive", ZEROS_AND_A_GLOBAL).public
    assert verdict.score == 0
    assert verdict.hint == ONLY_TOGETHER, as_text(verdict)
