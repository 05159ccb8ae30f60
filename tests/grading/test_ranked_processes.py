"""The processes that ranks are when graded: what each is fed, how long it may take, what is left of it."""

from __future__ import annotations

import time

import pytest

from grading.isolation.faults import InfrastructureFault
from grading.supervisor.cases import CaseInputs, CaseSet
from grading.supervisor.ranks.run import run_in_ranks
from grading.worker.procfs import descendants
from grading.worker.protocol.steps import RunCode, ServeExercise
from labkit.observe import make_inputs
from labkit.tree import same
from tests.grading.lab98.exercises import SUM, Ranks
from tests.grading.ranks import graded, ranks_server
from tests.grading.routed_programs import program, routed


@pytest.fixture(scope="module")
def server():
    with ranks_server() as found:
        yield found


def test_a_rank_is_fed_its_own_part(server) -> None:
    (run,) = routed(server, program("return x"), Ranks(3))
    for rank, got in enumerate(run.got["ranks"]):
        assert same(got["out"], run.tree["ranks"][rank]["x"])
        assert got["keys"] == ["mine", "scale"] and (got["rank"], got["world_size"]) == (rank, 3)


def test_a_case_after_a_mistake_runs_on_the_same_ranks(server) -> None:
    body = "calls.append(1)\nif len(calls) == 1 and rank == 1: 1 / 0\ncomm.barrier()\nreturn x"
    source = "calls = []\n" + program(body)
    first, second = routed(server, source, Ranks(3), Ranks(3))
    assert first.trouble.text == "rank 1: ZeroDivisionError: division by zero"
    assert second.trouble is None


@pytest.mark.slow
def test_an_endless_loop_in_one_rank_ends_in_time(server) -> None:
    endless = "def total(comm, x):\n    while comm.rank: pass"
    verdict = graded(server, endless).exercises["98-sum"].public
    assert verdict.outcome == "limit" and dict(verdict.rows)["problem"] == "it did not finish within 3 s of wall time"


@pytest.mark.slow
def test_waiting_for_others_is_no_time_of_its_own(server) -> None:
    """As on a machine with much to do: all together take longer than one may take, and none has taken long."""
    answer = "import time, torch\ndef total(comm, x):\n    y = torch.zeros_like(x)\n"
    answer += "    if comm.rank: comm.recv(y, comm.rank - 1)\n    time.sleep(1.8)\n    y += x\n"
    answer += "    if comm.rank < comm.world_size - 1: comm.send(y, comm.rank + 1)\n"
    answer += "    comm.broadcast(y, comm.world_size - 1)\n    return y"
    case = Ranks(3)
    steps = [
        RunCode("a", answer),
        ServeExercise("b", SUM.id),
    ]
    (run,) = run_in_ranks(server, steps, SUM, CaseSet((CaseInputs(case, make_inputs(SUM, case, 1)),))).runs
    assert run.trouble is None


def test_nothing_is_left_after_the_ranks(server) -> None:
    source = "import os, time\nif not os.fork():\n    os.setsid()\n    time.sleep(100)\n" + program("return x")
    routed(server, source, Ranks(4))
    deadline = time.monotonic() + 30
    while left := descendants(server.forking.pid):
        assert time.monotonic() < deadline, left


@pytest.mark.parametrize("n", [0, 17])
def test_so_many_ranks_there_are_not(server, n: int) -> None:
    with pytest.raises(InfrastructureFault, match=f"{n} ranks were asked for, and there may be 1 to 16"):
        server.open_ranks(n)
