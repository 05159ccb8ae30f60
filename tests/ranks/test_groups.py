"""Groups of ranks and grids of them on simulated ranks: values, who takes part, what is counted, and each mistake."""

from __future__ import annotations

import pytest
import torch

from labkit.meters.comm import track_comm
from labkit.ranks import UNIT, Comm, CommError, init_mesh, simulate
from tests.ranks.algorithms import in_groups


def told(fn, world_size: int) -> str:
    with pytest.raises(CommError) as caught:
        simulate(fn, world_size)
    return str(caught.value)


def test_the_last_dimension_of_a_mesh_runs_fastest() -> None:
    def fn(comm: Comm) -> tuple:
        mesh = init_mesh(comm, (2, 3), ("dp", "tp"))
        lines = []
        for name in ("dp", "tp"):
            found = torch.empty(mesh.size(name))
            mesh[name].all_gather_single(found, torch.tensor([float(comm.rank)]))
            lines.append(found.tolist())
        return mesh.get_coordinate(), mesh["tp"].rank, *lines

    results, traffic = simulate(fn, 6)
    assert results[4] == ((1, 1), 1, [1, 4], [3, 4, 5])
    assert results[2] == ((0, 2), 2, [2, 5], [0, 1, 2])
    assert {ends for ends in traffic.link_bytes} == {
        *((0, 3), (3, 0), (1, 4), (4, 1), (2, 5), (5, 2)),
        *((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)),
    }
    assert traffic.collectives == (2,) * 6


@pytest.mark.parametrize("n", [2, 4, 6])
def test_ranks_have_the_numbers_of_their_group(n: int) -> None:
    results, traffic = simulate(lambda comm: in_groups(comm, 5), n)
    for rank, found in enumerate(results):
        assert found[0] == [rank % 2, 2, rank, rank % 2, 2]
        column = next(part for part in found[2:] if isinstance(part, list) and len(part) == 5)
        assert column == [rank // 2, n // 2, rank, rank // 2, n // 2]
        assert torch.equal(found[1]["sum"], 2 * (torch.arange(5) % 5) + 1.0)
    assert results[0][-1][0].tolist() == results[n - 1][-1][0].tolist() == [n - 1.0] * 5
    assert (results[0][-1][1], results[n - 1][-1][1]) == (None, n - 1)
    assert traffic.collectives[0] == traffic.collectives[n - 1]


def test_groups_do_not_wait_for_one_another() -> None:
    """Two pairs reduce at the same time, and a slow pair does not hold up the other."""

    def fn(comm: Comm) -> float:
        pair = init_mesh(comm, (2, 2), ("across", "pair"))["pair"]
        if comm.rank == 3:
            pair.compute(10.0)
        pair.all_reduce(torch.zeros(2))
        return pair.now_s

    assert simulate(fn, 4, UNIT)[0] == [2, 2, 12, 12]


def test_a_barrier_of_a_group_is_of_its_ranks() -> None:
    def fn(comm: Comm) -> float:
        pair = init_mesh(comm, (2, 2), ("across", "pair"))["pair"]
        comm.compute(float(comm.rank))
        pair.barrier()
        return comm.now_s

    assert simulate(fn, 4)[0] == [1, 1, 3, 3]


def test_one_that_is_in_no_group_has_none() -> None:
    def fn(comm: Comm) -> tuple:
        group = comm.new_group([2, 0])
        return None if group is None else (group.rank, group.ranks)

    assert simulate(fn, 3)[0] == [(0, (0, 2)), None, (1, (0, 2))]


def test_a_log_has_the_numbers_of_all_ranks() -> None:
    def fn(comm: Comm) -> None:
        group = comm.new_group([1, 2])
        if group is not None:
            group.broadcast(torch.zeros(3), 1)
            if group.rank == 0:
                group.send(torch.zeros(1), 1)
            else:
                group.recv(torch.zeros(1), 0)

    with track_comm() as log:
        simulate(fn, 3)
    assert {(call.rank, call.name, call.peer) for call in log.calls} == {
        *((1, "broadcast", 2), (2, "broadcast", 2)),
        *((1, "send", 2), (2, "recv", 1)),
    }


def in_a_group_of_three(body: str):
    """Ranks 1, 2 and 3 of four do this with the communicator `group` of theirs."""

    def fn(comm: Comm) -> None:
        group = comm.new_group([1, 2, 3])
        if group is not None:
            exec(body, {"group": group, "comm": comm, "torch": torch, "x": torch.zeros(3), "rank": group.rank})

    return fn


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "group.all_reduce(x) if rank else group.broadcast(x, 0)",
            "collective number 1 of the group of ranks 1, 2, 3: rank 1 calls broadcast, rank 2 calls all_reduce",
        ),
        (
            "rank and group.all_reduce(x)",
            "deadlock: rank 2 waits in all_reduce of the group of ranks 1, 2, 3 for rank 1, which has finished, "
            "rank 3 waits in all_reduce of the group of ranks 1, 2, 3 for rank 1, which has finished",
        ),
        (
            "rank == 0 and group.barrier()",
            "deadlock: rank 1 waits at a barrier of the group of ranks 1, 2, 3 for rank 2, which has finished",
        ),
        (
            "rank == 0 and group.all_reduce(x, async_op=True)",
            "rank 1 started all_reduce of the group of ranks 1, 2, 3 and rank 2 never called it",
        ),
        (
            "group.broadcast(x, 3)",
            "rank 0 asks for a broadcast from rank 3, but the ranks are the whole numbers 0 to 2",
        ),
        ("group.new_group([0, 0])", "rank 0 asks for the group [0, 0], in which a rank comes twice"),
        (
            "group.new_group([0, 3])",
            "rank 0 asks for the group [0, 3], but the ranks are the whole numbers 0 to 2",
        ),
        ("group.new_group(1)", "rank 0 asks for the group 1: it must be a list of ranks"),
    ],
)
def test_every_mistake_has_its_sentence(body: str, text: str) -> None:
    assert told(in_a_group_of_three(body), 4) == text


@pytest.mark.parametrize(
    ("shape", "names", "text"),
    [
        ((2, 3), ("dp", "tp"), "a mesh of shape (2, 3) has 6 places, and there are 4 ranks"),
        ((4, 0), ("dp", "tp"), "a mesh of shape (4, 0) has 0 places, and there are 4 ranks"),
        ((2, 2), ("dp",), "a mesh of shape (2, 2) needs 2 different names, not ('dp',)"),
        ((2, 2), ("dp", "dp"), "a mesh of shape (2, 2) needs 2 different names, not ('dp', 'dp')"),
    ],
)
def test_a_mesh_that_does_not_fit(shape: tuple, names: tuple, text: str) -> None:
    assert told(lambda comm: init_mesh(comm, shape, names), 4) == text


def test_a_dimension_that_a_mesh_has_not() -> None:
    text = told(lambda comm: init_mesh(comm, (2, 1), ("dp", "tp"))["pp"], 2)
    assert text == "the mesh has no dimension 'pp': it has dp, tp"
