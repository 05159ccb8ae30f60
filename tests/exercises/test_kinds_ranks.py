"""Tiny exercises of several ranks: what each counts, and what goes wrong between them."""

from __future__ import annotations

import pytest
import torch

from labkit.compare import inputs_untouched
from labkit.ranks import Cluster
from labkit.spec import Answer, Budget, Exercise, Hint, Oracle, Run, Tolerance
from tests.exercises.kinds import RING, Size, declare, fails, passes, run

NAIVE = """
def all_reduce(comm, x):
    others = [rank for rank in range(comm.world_size) if rank != comm.rank]
    works = [comm.isend(x, rank) for rank in others]
    total, got = x.clone(), torch.empty_like(x)
    for rank in others:
        comm.recv(got, rank)
        total += got
    for work in works:
        work.wait()
    return total
"""


def all_reduce() -> tuple[Exercise, Oracle]:
    """An exercise of four ranks, each with its row, and a budget that only a ring meets."""
    n_ranks = 4

    def drive(ans, case, tree, stage):
        with stage.meter("ops"):
            out = ans.all_reduce(stage.comm, tree["x"][stage.rank])
        return {"out": out, "rank": stage.rank, "world_size": stage.world_size}

    def expect(run):
        out = run.tree["x"].sum(0)
        return {"ranks": [{"out": out, "rank": rank, "world_size": n_ranks} for rank in range(n_ranks)]}

    exercise = declare(
        "all-reduce",
        Answer("all_reduce"),
        drive,
        cases=(Size(n=16), Size(n=18)),
        inputs=lambda case, gen: {"x": torch.randn(n_ranks, case.n, generator=gen)},
        run=Run(ranks=n_ranks),
        meters=("ops",),
    )
    oracle = Oracle(
        exercise.id,
        expect=expect,
        judge=(inputs_untouched,),
        tolerance=Tolerance(rtol=1e-5, atol=1e-6),
        budgets=(
            Budget("bytes_sent", lambda run: 2 * 3 * 4 * -(-run.case.n // 4), "Send one part at a time."),
            Budget("messages", 6, "A ring sends once a round."),
            Budget("rounds", 6, "A ring takes 2(n-1) rounds."),
            Budget("dispatches", 200, "Few operations a rank."),
        ),
        diagnose=(Hint(lambda run: bool((run.got["ranks"][0]["out"] == 0).all()), "Zeros came back."),),
    )
    return exercise, oracle


def test_several_ranks() -> None:
    exercise, oracle = all_reduce()
    passes(exercise, oracle, RING)
    measured = dict((name, value) for name, value, _, _ in run(exercise, oracle, RING).budgets)
    assert (measured["bytes_sent"], measured["messages"], measured["rounds"]) == (96, 6, 6)
    assert measured["dispatches"] > 10

    fails(exercise, oracle, NAIVE, "over budget: bytes sent", "measured  192 bytes", "Send one part at a time.")
    fails(exercise, oracle, RING.replace("isend(", "isend(0 * "), "none of the 2 cases", "rank 0: wrong value")
    fails(exercise, oracle, RING.replace("+ got", "+ 0 * got"), "rank 0: wrong value")
    fails(exercise, oracle, "def all_reduce(comm, x):\n    return torch.zeros_like(x)", "Zeros came back.")
    fails(exercise, oracle, NAIVE.replace("+= got", "+= got * (rank != 3)"), "rank 0: wrong value")
    fails(exercise, oracle, RING.replace(".clone()", ""), "the input `x` was changed in place on rank 0")


def test_a_case_says_how_many_ranks_it_has_and_on_which_nodes() -> None:
    def drive(ans, case, tree, stage):
        x = tree["x"][stage.rank].clone()
        ans.to_all(stage.comm, x)
        return {"out": x}

    exercise = declare(
        "to-all",
        Answer("to_all"),
        drive,
        cases=(Size(1), Size(2), Size(5)),
        inputs=lambda case, gen: {"x": torch.randn(case.n, 3, generator=gen)},
        run=Run(ranks=lambda case: case.n, cluster=lambda case: Cluster(ranks_per_node=2)),
    )
    oracle = Oracle(
        exercise.id,
        expect=lambda run: {"ranks": [{"out": run.tree["x"][0]}] * run.case.n},
        budgets=(Budget("bytes_across", 12, "One message leaves a node."),),
    )
    chain = """def to_all(comm, x):
    if comm.rank > 0:
        comm.recv(x, comm.rank - 1)
    if comm.rank < comm.world_size - 1:
        comm.send(x, comm.rank + 1)
"""
    passes(exercise, oracle, chain)
    star = """def to_all(comm, x):
    for other in range(1, comm.world_size):
        if comm.rank == 0:
            comm.send(x, other)
        elif comm.rank == other:
            comm.recv(x, 0)
"""
    fails(exercise, oracle, star, "measured  36 bytes", "One message leaves a node.")


@pytest.mark.slow
def test_what_goes_wrong_between_ranks_is_told() -> None:
    exercise, oracle = all_reduce()
    deadlock = "def all_reduce(comm, x):\n    comm.recv(x, (comm.rank - 1) % 4)\n    return x"
    fails(
        exercise,
        oracle,
        deadlock,
        "let one receive while the other sends",
        "problem   deadlock: rank 0 waits for a message from rank 3, ",
        "line 2: comm.recv(x, (comm.rank - 1) % 4)",
    )
    skips = "def all_reduce(comm, x):\n    if comm.rank:\n        return comm.all_reduce(x)\n    return x"
    fails(exercise, oracle, skips, "Every rank has to call every collective", "waits in all_reduce for rank 0, which")
    left_out = "def all_reduce(comm, x):\n    if comm.rank:\n        comm.barrier()\n    return x"
    fails(exercise, oracle, left_out, "Every rank has to call every collective and every barrier")
    one_raises = "def all_reduce(comm, x):\n    if comm.rank == 2:\n        raise ValueError('no')\n    comm.barrier()"
    fails(exercise, oracle, one_raises, "rank 2: ValueError: no", "line 3: raise ValueError('no')")
    fails(exercise, oracle, "def all_reduce(comm, x):\n    raise NotImplementedError", "not answered yet")
    endless = "def all_reduce(comm, x):\n    comm.barrier()\n    while True:\n        x = x + 1"
    verdict = run(exercise, oracle, endless)
    assert verdict.outcome == "limit"
    assert dict(verdict.rows)["at"].startswith(("line 3:", "line 4:"))
