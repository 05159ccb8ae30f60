"""What `track_comm` writes down: calls of our communicators and of torch.distributed, in order, and their overlap."""

from __future__ import annotations

import os
from collections import Counter

import pytest
import torch

from labkit.meters.comm import CommLog, count_communication, track_comm
from labkit.ranks import Comm, run_ranks, simulate

real = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
both = pytest.mark.parametrize("backend", ["simulated", pytest.param("gloo", marks=real)])


def listed(log: CommLog, rank: int) -> list[tuple]:
    return [(call.name, call.n_bytes, call.peer) for call in log.of(rank).calls]


@both
def test_all_ranks_from_outside(backend: str) -> None:
    def fn(comm: Comm) -> None:
        x = torch.zeros(3)
        if comm.rank == 0:
            comm.isend(x, 1).wait()
        else:
            comm.recv(x, 0)
        comm.barrier()
        comm.all_reduce(x)
        comm.all_gather([x.clone(), x.clone()], x)
        comm.reduce_scatter(x, [x, x])
        comm.broadcast(x, 1)

    with track_comm() as log:
        run_ranks(fn, 2, backend)
    rest = [("barrier", 0, None), ("all_reduce", 12, None), ("all_gather", 12, None), ("reduce_scatter", 24, None)]
    assert listed(log, 0) == [("isend", 12, 1), *rest, ("broadcast", 12, 1)]
    assert listed(log, 1) == [("recv", 12, 0), *rest, ("broadcast", 12, 1)]
    assert log.n_calls == 12 and log.n_bytes == 12 + 2 * (12 + 12 + 24 + 12) and log.overlap == 0
    assert log.calls_by_name["barrier"] == 2 and log.bytes_by_name["reduce_scatter"] == 48


@both
def test_one_rank_from_inside(backend: str) -> None:
    def fn(comm: Comm) -> list[str]:
        x = torch.zeros(3)
        comm.all_reduce(x)
        with track_comm() as log:
            for _ in range(comm.rank + 1):
                comm.send(x, 1) if comm.rank == 0 else (comm.recv(x, 0) if _ == 0 else None)
            comm.barrier()
        comm.barrier()
        return log.order

    assert run_ranks(fn, 2, backend) == [["send", "barrier"], ["recv", "barrier"]]


@both
def test_overlap_is_told_in_operations_of_backward(backend: str) -> None:
    """Three layers whose gradients are summed in hooks, waited for at once, after backward, or started after it."""

    def fn(comm: Comm) -> list[tuple]:
        found = []
        for way in ("hidden", "waited", "after"):
            torch.manual_seed(0)
            model = torch.nn.Sequential(*(torch.nn.Linear(4, 4, bias=False) for _ in range(3)))
            works = []

            def hook(parameter, way=way, works=works):
                work = comm.all_reduce(parameter.grad, async_op=way == "hidden")
                if work:
                    works.append(work)

            with track_comm() as log:
                if way != "after":
                    for parameter in model.parameters():
                        parameter.register_post_accumulate_grad_hook(hook)
                model(torch.ones(2, 4)).sum().backward()
                if way == "after":
                    works = [comm.all_reduce(parameter.grad, async_op=True) for parameter in model.parameters()]
                for work in works:
                    work.wait()
            calls = log.calls
            found.append(([call.in_backward for call in calls], [call.hidden_ops > 0 for call in calls], log.overlap))
        return found

    for hidden, waited, after in run_ranks(fn, 2, backend):
        # The last call has no backward pass left to hide behind.
        assert hidden == ([True] * 3, [True, True, False], pytest.approx(2 / 3))
        assert waited == ([True] * 3, [False] * 3, 0.0)
        assert after == ([False] * 3, [False] * 3, 0.0)


@real
def test_torch_distributed_under_its_own_names() -> None:
    def fn(comm: Comm) -> None:
        import torch.distributed as dist

        x, two = torch.zeros(2), torch.zeros(4)
        dist.all_reduce(x)
        dist.broadcast(x, 1)
        dist.all_gather([x.clone(), x.clone()], x)
        dist.reduce_scatter(x, [x, x])
        dist.reduce(x, 0)
        dist.all_to_all_single(two, two.clone())
        dist.gather(x, [x.clone(), x.clone()] if comm.rank == 0 else None)
        dist.scatter(x, [x.clone(), x.clone()] if comm.rank == 0 else None)
        if comm.rank == 0:
            dist.send(x, 1)
        else:
            dist.recv(x, 0)
        dist.barrier()

    with track_comm() as log:
        run_ranks(fn, 2, "gloo")
    names = [
        ("all_reduce", 8),
        ("broadcast", 8),
        ("all_gather", 8),
        ("reduce_scatter", 16),
        ("reduce", 8),
        ("all_to_all_single", 16),
        ("gather", 8),
    ]
    assert [pair[:2] for pair in listed(log, 0)] == [*names, ("scatter", 16), ("send", 8), ("barrier", 0)]
    assert [pair[:2] for pair in listed(log, 1)] == [*names, ("scatter", 0), ("recv", 8), ("barrier", 0)]
    assert {call.peer for call in log.calls if call.name == "broadcast"} == {1}
    assert [call.peer for call in log.calls if call.name in ("send", "recv")] == [1, 0]


@real
@pytest.mark.slow
def test_ddp_starts_its_buckets_within_backward() -> None:
    def fn(comm: Comm) -> tuple[CommLog, CommLog]:
        model = torch.nn.Sequential(*(torch.nn.Linear(64, 64, bias=False) for _ in range(4)))
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=64 * 64 * 4 / 2**20)
        # Its first step is spent on the buckets: they are filled in the order of the gradients from the second on.
        model(torch.ones(2, 64)).sum().backward()
        with track_comm() as log:
            model(torch.ones(2, 64)).sum().backward()
        with track_comm() as without, model.no_sync():
            model(torch.ones(2, 64)).sum().backward()
        return log, without

    # The last bucket is full when no gradient is left to compute.
    hides = [True, True, True, False]
    for log, without in run_ranks(fn, 2, "gloo"):
        reduced = [call for call in log.calls if call.name == "all_reduce"]
        assert sum(call.n_bytes for call in reduced) == 4 * 64 * 64 * 4 and len(reduced) == 4
        assert all(call.in_backward for call in reduced)
        assert [call.hidden_ops > 0 for call in reduced] == hides
        assert without.n_calls == 0


def test_nested_logs_and_an_error() -> None:
    def fn(comm: Comm) -> None:
        x = torch.zeros(1)
        comm.all_reduce(x)
        with track_comm() as inner:
            comm.all_reduce(x)
        logs.append(inner)

    logs: list[CommLog] = []
    with track_comm() as outer, track_comm() as second:
        simulate(fn, 2)
    assert [log.n_calls for log in (outer, second, *logs)] == [4, 4, 1, 1]

    with pytest.raises(ZeroDivisionError), track_comm() as log:
        simulate(fn, 2)
        raise ZeroDivisionError
    assert log.n_calls == 4
    simulate(fn, 2)
    assert log.n_calls == 4 and log.calls_by_name == Counter(all_reduce=4)


def test_as_a_meter_of_an_exercise() -> None:
    measured: dict[str, float] = {}

    def fn(comm: Comm) -> None:
        comm.all_reduce(torch.zeros(2))

    for _ in range(2):
        with count_communication(measured):
            simulate(fn, 2)
    assert measured == {"comm_calls": 4, "comm_bytes": 32}
