"""Ranks that are processes on gloo: the same values and counts as simulated, and what cannot run here is said.

Functions are defined inside of the tests, as they are in a notebook: they travel to the ranks by value.
"""

from __future__ import annotations

import os
import socket
import sys
import tracemalloc

import pytest
import torch

from labkit.meters.memory.budget import measure_memory
from labkit.ranks import (
    Cluster,
    Comm,
    measure_ranks,
    run_ranks,
    simulate,
)
from tests.ranks.algorithms import ALL, everything, in_groups
from tests.ranks.real import gloo, told

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@pytest.mark.parametrize("name", ALL)
def test_values_and_counts_are_those_of_the_simulator(name: str) -> None:
    cluster = Cluster(ranks_per_node=2)
    cases = [(torch.float32, 0), (torch.bfloat16, 3), (torch.int64, 7)]
    algorithm = ALL[name]

    def fn(comm: Comm) -> list[torch.Tensor]:
        inputs = [torch.arange(size).to(dtype) * (comm.rank + 1) for dtype, size in cases]
        return [algorithm(comm, x) for x in inputs]

    for n in (1, 3, 4):
        results, traffic = measure_ranks(fn, n, "gloo", cluster=cluster)
        simulated, wanted = simulate(fn, n, cluster)
        assert traffic == wanted
        for found, expected in zip(results, simulated):
            assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(found, expected))


@pytest.mark.parametrize("n", [1, 3])
def test_collectives_are_those_of_the_simulator(n: int) -> None:
    def fn(comm: Comm) -> list[dict]:
        return [everything(comm, size, dtype) for size, dtype in ((0, torch.float32), (7, torch.int64))]

    results, traffic = measure_ranks(fn, n, "gloo")
    simulated, wanted = simulate(fn, n)
    torch.testing.assert_close(results, simulated, rtol=0, atol=0)
    assert traffic == wanted


@pytest.mark.parametrize("n", [2, 4])
def test_groups_are_those_of_the_simulator(n: int) -> None:
    def fn(comm: Comm) -> list[object]:
        return in_groups(comm, 3)

    results, traffic = measure_ranks(fn, n, "gloo")
    simulated, wanted = simulate(fn, n)
    torch.testing.assert_close(results, simulated, rtol=0, atol=0)
    assert traffic == wanted


@pytest.mark.slow
def test_torch_distributed_itself_works() -> None:
    def fn(comm: Comm) -> tuple:
        import torch.distributed as dist

        x = torch.tensor([comm.rank + 1.0])
        dist.all_reduce(x)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
        model(x * comm.rank).sum().backward()
        environment = {name: os.environ[name] for name in ("RANK", "WORLD_SIZE")}
        return x.item(), model.module.weight.grad.item(), dist.get_backend(), environment

    zero, one = gloo(fn, 2)
    assert zero == (3.0, 1.5, "gloo", {"RANK": "0", "WORLD_SIZE": "2"})
    assert one == (3.0, 1.5, "gloo", {"RANK": "1", "WORLD_SIZE": "2"})


def test_a_message_is_what_the_tensor_was_in_any_layout() -> None:
    def fn(comm: Comm) -> torch.Tensor:
        x = torch.arange(6.0).view(2, 3).t()
        if comm.rank == 0:
            work = comm.isend(x, 1)
            x.zero_()
            work.wait()
            return x
        into = torch.zeros(2, 3).t()
        assert not into.is_contiguous()
        works = [comm.irecv(into, 0)]
        works[0].wait()
        works[0].wait()
        return into

    assert gloo(fn, 2)[1].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


@pytest.mark.parametrize("backend", ["simulated", "gloo"])
def test_a_tensor_that_is_touched_before_its_wait(backend: str) -> None:
    """It is old until then, what is written into it is lost, and what was sent stays what it was."""

    def fn(comm: Comm) -> list[float]:
        mine, theirs, total = torch.tensor(comm.rank + 1.0), torch.tensor(-1.0), torch.tensor(comm.rank + 1.0)
        works = [comm.isend(mine, 1 - comm.rank), comm.irecv(theirs, 1 - comm.rank)]
        works.append(comm.all_reduce(total, async_op=True))
        before = [theirs.item(), total.item()]
        for tensor in (mine, theirs, total):
            tensor.fill_(7)
        for work in works:
            work.wait()
        return [*before, mine.item(), theirs.item(), total.item()]

    assert run_ranks(fn, 2, backend) == [[-1.0, 1.0, 7.0, 2.0, 3.0], [-1.0, 2.0, 7.0, 1.0, 3.0]]


def test_ranks_start_as_the_simulated_do() -> None:
    def fn(comm: Comm) -> tuple:
        return torch.rand(2).tolist(), torch.get_default_dtype(), torch.is_grad_enabled(), os.getcwd()

    torch.manual_seed(5)
    state = torch.get_rng_state()
    found = gloo(fn, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert found == simulate(fn, 2)[0]


@pytest.mark.full("ranks")
def test_a_memory_meter_leaves_tracing_on_where_gloo_has_threads() -> None:
    """To stop it there crashes one run in forty, whenever a thread of gloo is freeing a tensor just then."""

    def fn(comm: Comm) -> tuple[bool, float]:
        measured = {}
        with measure_memory(measured):
            comm.all_reduce(torch.ones(1000))
        return tracemalloc.is_tracing(), measured["peak_bytes"]

    (on_gloo, _), (also, n_bytes) = gloo(fn, 2)
    assert on_gloo and also and n_bytes >= 4000
    simulate(fn, 2)
    assert not tracemalloc.is_tracing(), "once the last of the simulated ranks has ended its block"


def test_what_a_rank_prints_is_tagged(capfd: pytest.CaptureFixture[str]) -> None:
    def fn(comm: Comm) -> None:
        for rank in range(comm.world_size):
            if rank == comm.rank:
                print("a\nb", end="", flush=True)
                print("c")
                os.write(2, b"noise of a library\n")
            comm.barrier()
        print("no line end", end="")

    gloo(fn, 2)
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == sorted(f"[rank {r}] {t}" for r in (0, 1) for t in ("a", "bc", "no line end"))
    assert err == ""


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    wanted = "ranks in processes of their own need the package cloudpickle; install it with: pip install cloudpickle"
    assert told(ImportError, lambda comm: None, 1) == wanted


def test_what_cannot_run_here_is_said_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(comm: Comm) -> None:
        pass

    assert told(ValueError, nothing, 0) == "world_size is 0: there must be at least one rank"
    assert told(ValueError, nothing, 1, timeout_s=0) == "timeout_s is 0: the ranks need some time"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    wanted = "nccl needs a GPU for each rank: 2 are asked for and here is 1 GPU; use backend='gloo'"
    assert told(ValueError, nothing, 2, backend="nccl") == wanted
    with monkeypatch.context() as patch:

        def refused(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        patch.setattr(socket, "socket", refused)
        wanted = (
            "ranks in processes talk over this machine's loopback network, which this program may not use (Permission "
            "denied). While a notebook is graded that is as it should be, and costs no points; elsewhere use "
            "backend='simulated'"
        )
        assert told(ValueError, nothing, 1) == wanted
    monkeypatch.delattr(os, "fork")
    wanted = "ranks in processes need Linux or macOS: use backend='simulated', which runs everywhere"
    assert told(ValueError, nothing, 1) == wanted


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 2])
def test_nccl(n: int) -> None:
    if torch.cuda.device_count() < n:
        pytest.skip(f"nccl needs {n} GPUs for {n} ranks, and there are {torch.cuda.device_count()}")

    def fn(comm: Comm) -> torch.Tensor:
        x = torch.full((4,), comm.rank + 1.0, device=comm.device)
        comm.all_reduce(x)
        return ALL["ring"](comm, x)

    results, traffic = measure_ranks(fn, n, "nccl")
    assert all(torch.equal(x, torch.full((4,), float(n * n * (n + 1) // 2))) for x in results)
    assert traffic == simulate(fn, n)[1]
