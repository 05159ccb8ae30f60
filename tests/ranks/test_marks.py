"""Named moments: all ranks halt at them, what each holds is noted, and whoever is elsewhere is told so."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from labkit.compare import came_by, sent_around
from labkit.meters.memory import measure_memory
from labkit.meters.memory.budget import PYTHON_NOISE_BYTES, TABLES_BYTES
from labkit.observe import observe
from labkit.ranks import Cluster, Comm, CommError, RankFailed, RanksHung, measure_ranks, simulate
from labkit.ranks.marks import MAX_LABEL
from labkit.ranks.network import Network
from labkit.spec import Answer, Case, Exercise, Observation, Run


def gathers(comm: Comm) -> dict[str, float]:
    """A shard for each rank, the whole of it for a while."""
    measured: dict[str, float] = {}
    with measure_memory(measured):
        shard = torch.ones(100)
        comm.mark("before")
        whole = torch.empty(100 * comm.world_size)
        comm.all_gather_single(whole, shard)
        comm.mark("gathered")
        del whole
        comm.mark("after")
    return measured


@pytest.mark.parametrize("backend", ["simulated", pytest.param("gloo", marks=pytest.mark.slow)])
@pytest.mark.parametrize("n", [1, 3])
def test_what_every_rank_holds_is_noted_with_what_it_has_called(backend: str, n: int) -> None:
    results, traffic = measure_ranks(gathers, n, backend)
    assert [one.label for one in traffic.moments] == ["before", "gathered", "after"]
    assert [one.held_bytes for one in traffic.moments] == [(400,) * n, (400 + 400 * n,) * n, (400,) * n]
    assert [one.collectives for one in traffic.moments] == [(0,) * n, (1,) * n, (1,) * n]
    assert [one.bytes_sent for one in traffic.moments] == [(0,) * n, *[(400 * (n - 1),) * n] * 2]
    assert results == [{"peak_bytes": 400 + 400 * n}] * n


def test_nothing_is_held_where_nobody_counts() -> None:
    _, traffic = simulate(lambda comm: comm.mark("here"), 2)
    assert traffic.moments[0].held_bytes == (None, None)


def test_a_moment_takes_no_time_and_sends_nothing() -> None:
    def program(comm: Comm, marks: bool) -> float:
        comm.compute(1.0 + comm.rank)
        if marks:
            comm.mark("here")
        began_s = comm.now_s
        comm.barrier()
        return began_s

    plain, marked = (simulate(lambda comm, marks=marks: program(comm, marks), 3) for marks in (False, True))
    assert marked[0] == plain[0] == [1.0, 2.0, 3.0]
    assert (marked[1].time_s, marked[1].transfers, marked[1].rounds) == (plain[1].time_s, (), 0)


def test_a_group_halts_with_all_the_others() -> None:
    def program(comm: Comm) -> list[int]:
        seen.append(comm.rank)
        comm.new_group([comm.rank // 2 * 2, comm.rank // 2 * 2 + 1]).mark("here")
        return list(seen)

    seen: list[int] = []
    assert all(sorted(one) == [0, 1, 2, 3] for one in simulate(program, 4)[0])


def test_what_a_cycle_of_references_keeps_counts_no_more() -> None:
    def program(comm: Comm) -> None:
        with measure_memory({}):
            cycle = [torch.ones(1000)]
            cycle.append(cycle)
            del cycle
            comm.mark("freed")

    assert simulate(program, 2)[1].moments[0].held_bytes == (0, 0)


def sends_and_keeps_nothing(comm: Comm) -> None:
    """What it does not hold itself lies in the network: a message to the next rank, then a gather nobody waits for."""
    n, rank = comm.world_size, comm.rank
    got, part, parts = torch.empty(100), torch.ones(10), [torch.empty(10) for _ in range(n)]
    with measure_memory({}):
        message = comm.isend(torch.ones(100), (rank + 1) % n)
        comm.mark("sent")
        comm.recv(got, (rank - 1) % n)
        message.wait()
        comm.mark("received")
        gathered = comm.all_gather(parts, part, async_op=True)
        comm.mark("gathering")
        gathered.wait()
        comm.mark("gathered")


@pytest.mark.parametrize("backend", ["simulated", pytest.param("gloo", marks=pytest.mark.slow)])
def test_what_lies_in_the_network_is_held_by_who_sent_it_or_waits_for_it(backend: str) -> None:
    _, traffic = measure_ranks(sends_and_keeps_nothing, 3, backend)
    assert [(one.label, one.held_bytes) for one in traffic.moments] == [
        ("sent", (400,) * 3),
        ("received", (0,) * 3),
        ("gathering", (120,) * 3),
        ("gathered", (0,) * 3),
    ]


@pytest.mark.parametrize("backend", ["simulated", pytest.param("gloo", marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", [lambda whole: whole.numpy().copy(), lambda whole: whole.numpy().tobytes()])
def test_what_is_kept_as_an_object_of_python_is_held_too(backend: str, form: Callable) -> None:
    """Less a share that is left to Python itself and to tables of PyTorch."""

    def program(comm: Comm) -> None:
        with measure_memory({}):
            kept = form(torch.ones(2**20))
            comm.mark("kept")
            del kept
            comm.mark("freed")

    kept, freed = measure_ranks(program, 1, backend)[1].moments
    assert 0 <= 4 * 2**20 - kept.held_bytes[0] <= PYTHON_NOISE_BYTES + TABLES_BYTES
    assert freed.held_bytes == (0,)


def other_moments(comm: Comm) -> None:
    for label in ("a", "b") if comm.rank else ("b", "a"):
        comm.mark(label)


def not_on_rank_1(comm: Comm) -> None:
    if comm.rank != 1:
        comm.mark("a")


def only_on_rank_1(comm: Comm) -> None:
    if comm.rank == 1:
        comm.mark("a")


def fewer_on_rank_1(comm: Comm) -> None:
    for _ in range(3 - comm.rank):
        comm.mark("a")


def barrier_instead(comm: Comm) -> None:
    comm.mark("a") if comm.rank else comm.barrier()


def message_instead(comm: Comm) -> None:
    comm.mark("a") if comm.rank else comm.recv(torch.zeros(1), 1)


WRONG: dict[str, tuple[Callable[[Comm], None], str]] = {
    "out of order": (other_moments, "mark number 1: rank 0 is at 'b', rank 1 at 'a'"),
    "never reached": (not_on_rank_1, "deadlock: rank 0 waits at the mark 'a' for rank 1, which has finished"),
    "one rank only": (only_on_rank_1, "deadlock: rank 1 waits at the mark 'a' for rank 0, which has finished"),
    "one fewer": (fewer_on_rank_1, "deadlock: rank 0 waits at the mark 'a' for rank 1, which has finished"),
    "a barrier": (barrier_instead, "deadlock: rank 0 waits at a barrier for rank 1, rank 1 waits at the mark 'a' for"),
    "a message": (message_instead, "deadlock: rank 0 waits for a message from rank 1, rank 1 waits at the mark 'a'"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_ranks_that_are_not_at_one_moment_are_told_so(kind: str) -> None:
    program, text = WRONG[kind]
    with pytest.raises(CommError) as caught:
        simulate(program, 2)
    assert str(caught.value).startswith(text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["out of order", "never reached"])
def test_real_ranks_are_told_so_too(kind: str) -> None:
    program, text = WRONG[kind]
    with pytest.raises((CommError, RanksHung)) as caught:
        measure_ranks(program, 2, "gloo", timeout_s=3)
    hung = "the ranks did not finish in 3 s: rank 0 waits at the mark 'a' for the others, rank 1 has finished"
    assert str(caught.value).startswith(text if kind == "out of order" else hung)


@pytest.mark.parametrize("backend", ["simulated", pytest.param("gloo", marks=pytest.mark.slow)])
def test_a_rank_that_fails_before_the_moment_ends_the_run(backend: str) -> None:
    with pytest.raises(RankFailed, match=r"rank 1.*lost"):
        measure_ranks(fails_before, 2, backend, timeout_s=20)


def fails_before(comm: Comm) -> None:
    if comm.rank:
        raise ValueError("lost")
    comm.mark("a")


def test_a_misfit_that_is_caught_still_ends_the_run() -> None:
    """A moment's name could carry a value at no cost."""
    network = Network(2, Cluster())
    network.mark(0, "I hold 0", None)
    with pytest.raises(CommError, match="mark number 1"):
        network.mark(1, "I hold 1", None)
    with pytest.raises(CommError, match="mark number 1: rank 0 is at 'I hold 0', rank 1 at 'I hold 1'"):
        network.check_nothing_left()


@pytest.mark.parametrize("label", ["", "x" * (MAX_LABEL + 1), "a\nb", None, 3])
def test_a_moment_has_a_name(label: object) -> None:
    with pytest.raises(CommError, match="a moment's name has 1 to 60 characters"):
        simulate(lambda comm: comm.mark(label), 1)


def in_layers(drive: Callable) -> Observation:
    exercise = Exercise(
        "98-moments", "Moments", 1, 1, 1, (Answer("use"),), (Case(),), lambda case, gen: {}, drive, Run(ranks=2)
    )
    return observe(exercise, SimpleNamespace(use=lambda n: torch.ones(n)), Case(), {})


def test_a_driver_has_the_figure_of_the_rank_that_holds_the_most_and_its_names() -> None:
    def drive(ans, case, tree, stage):
        with stage.meter("memory"):
            kept = ans.use(100 * (stage.rank + 1))
            stage.mark("between layers")
            kept = ans.use(50)
            stage.mark("between layers")
        return {"n": len(kept), "marks": stage.marks}

    run = in_layers(drive)
    assert run.measured["held_bytes, between layers"] == 800
    assert len(run.held["held_bytes, between layers"]) == 1
    assert run.held["held_bytes, between layers"][0].startswith("800 B: 200 float32")
    assert [moment.held_bytes for moment in run.moments] == [(400, 800), (200, 200)]
    assert [one["marks"] for one in run.got["ranks"]] == [["between layers"] * 2] * 2


def test_which_moments_there_were_and_after_which_calls_is_a_property() -> None:
    def drive(ans, case, tree, stage):
        stage.mark("before")
        stage.comm.all_reduce(ans.use(3))
        stage.mark("after")
        return {}

    run = in_layers(drive)
    assert came_by(lambda run: [("before", 0), ("after", 1)])(run) is None
    assert came_by(lambda run: [("before", None), ("after", None)])(run) is None
    assert came_by(lambda run: [("before", 0), ("after", 2)])(run) == (
        "after: rank 0 had called 1 collectives by then, not 2"
    )
    for wanted in ([("after", 1), ("before", 0)], [("before", 0)], []):
        assert came_by(lambda run, wanted=wanted: wanted)(run) == (
            f"the ranks came by 2 moments, and {len(wanted)} were to be marked, in their order"
        )


def test_how_much_was_sent_by_a_moment_and_after_it_is_a_property() -> None:
    def drive(ans, case, tree, stage):
        stage.comm.all_reduce(ans.use(2))
        stage.mark("between")
        stage.comm.all_reduce(ans.use(4))
        stage.mark("after")
        return {}

    run = in_layers(drive)
    assert [moment.bytes_sent for moment in run.moments] == [(8, 8), (24, 24)]
    assert sent_around(lambda run: [(16, 32), (48, 0)], "Send it.")(run) is None
    assert sent_around(lambda run: [(17, 0), (0, 0)], "Send it.")(run) == (
        "between: the ranks had sent 16 bytes by then, and no less than 17 will do"
    )
    assert sent_around(lambda run: [(0, 33), (0, 0)], "Send it.")(run) == (
        "between: the ranks sent 32 bytes afterwards, and 33 is the least"
    )
    assert sent_around(lambda run: [], "Send it.").hint == "Send it."
