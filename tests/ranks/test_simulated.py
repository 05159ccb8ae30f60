"""Ranks in one process: right values, exact counts, the same on every run, and every mistake told in a sentence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import labkit
from labkit.ranks import UNIT, Comm, simulate
from tests.ranks.algorithms import ALL, bytes_of, ring, rounds_of


def counts(fn, world_size: int) -> tuple:
    """Bytes and messages by rank, rounds, bytes and messages by link."""
    traffic = simulate(fn, world_size)[1]
    return traffic.bytes_sent, traffic.messages, traffic.rounds, traffic.link_bytes, traffic.link_messages


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("size", [0, 3, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_a_ring(n: int, size: int, dtype: torch.dtype) -> None:
    results, traffic = simulate(lambda comm: ring(comm, torch.arange(size).to(dtype) * (comm.rank + 1)), n)
    wanted = torch.arange(size).to(dtype) * (n * (n + 1) // 2)
    for result in results:
        torch.testing.assert_close(result, wanted)
        assert torch.equal(result, results[0])
    assert traffic.rounds == 2 * (n - 1) and traffic.messages == (2 * (n - 1),) * n
    assert sum(traffic.bytes_sent) == 2 * (n - 1) * wanted.nbytes
    if n > 1:
        assert set(traffic.link_bytes) == {(rank, (rank + 1) % n) for rank in range(n)}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11, 16])
@pytest.mark.parametrize("name", ALL)
def test_each_algorithm_sends_what_its_formula_says(name: str, n: int) -> None:
    x = torch.arange(16 * n, dtype=torch.float64)
    results, traffic = simulate(lambda comm: ALL[name](comm, x + comm.rank), n, UNIT)
    for result in results:
        assert torch.equal(result, n * x + n * (n - 1) // 2)
    assert traffic.seconds == rounds_of(name, n)
    # A chain is never longer than the rounds in which a rank sends one message at a time.
    assert traffic.rounds <= {"naive": 2}.get(name, rounds_of(name, n))
    assert sum(traffic.bytes_sent) == sum(traffic.bytes_received) == bytes_of(name, n, x.nbytes)


def test_the_counts_of_a_chain_and_of_a_star() -> None:
    def chain(comm: Comm) -> None:
        x = torch.zeros(10)
        if comm.rank > 0:
            comm.recv(x, comm.rank - 1)
        if comm.rank < 2:
            comm.send(x, comm.rank + 1)

    def star(comm: Comm) -> None:
        x = torch.zeros(10)
        if comm.rank == 0:
            for work in [comm.isend(x, other) for other in (1, 2)]:
                work.wait()
        else:
            comm.recv(x, 0)

    links = {(0, 1): 40, (1, 2): 40}
    assert counts(chain, 3) == ((40, 40, 0), (1, 1, 0), 2, links, dict.fromkeys(links, 1))
    links = {(0, 1): 40, (0, 2): 40}
    assert counts(star, 3) == ((80, 0, 0), (2, 0, 0), 1, links, dict.fromkeys(links, 1))


def test_what_follows_a_barrier_depends_on_what_came_before() -> None:
    def one_pair_after_the_other(comm: Comm) -> None:
        x = torch.zeros(1)
        for first in (0, 2):
            if comm.rank == first:
                comm.send(x, first + 1)
            elif comm.rank == first + 1:
                comm.recv(x, first)
            if barrier:
                comm.barrier()

    barrier = False
    assert simulate(one_pair_after_the_other, 4)[1].rounds == 1
    barrier = True
    assert simulate(one_pair_after_the_other, 4)[1].rounds == 2


def test_every_run_is_the_same_run() -> None:
    def run() -> tuple:
        order = []

        def fn(comm: Comm) -> list[float]:
            for step in range(4):
                order.append((comm.rank, step))
                x = torch.randn(3)
                works = [comm.isend(x, other) for other in range(comm.world_size) if other != comm.rank]
                for other in range(comm.world_size):
                    if other != comm.rank:
                        comm.recv(x, other)
                for work in works:
                    work.wait()
                comm.barrier()
            return x.tolist()

        torch.manual_seed(0)
        return (*simulate(fn, 4), order)

    first = run()
    assert all(run() == first for _ in range(20))


def test_a_message_is_what_the_tensor_was_and_arrives_at_wait() -> None:
    def fn(comm: Comm) -> list[float]:
        x = torch.full((2,), float(comm.rank + 1), requires_grad=True)
        if comm.rank == 0:
            work = comm.isend(x, 1)
            x.detach().zero_()
            work.wait()
            work.wait()
            return []
        work = comm.irecv(x, 0)
        before = x.tolist()
        work.wait()
        return before + x.tolist()

    assert labkit.run_ranks(fn, 2) == [[], [2.0, 2.0, 1.0, 1.0]]


def test_messages_of_a_link_keep_their_order() -> None:
    def fn(comm: Comm) -> list[float] | None:
        if comm.rank == 0:
            works = [comm.isend(torch.tensor(float(k)), 1) for k in range(5)]
            return [work.wait() for work in works] and None
        into = [torch.empty(()) for _ in range(5)]
        works = [comm.irecv(x, 0) for x in into]
        for work in reversed(works):
            work.wait()
        return [x.item() for x in into]

    assert labkit.run_ranks(fn, 2)[1] == [0, 1, 2, 3, 4]


def test_a_rank_has_settings_of_its_own() -> None:
    def fn(comm: Comm) -> tuple:
        first = torch.rand(1).item()
        grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
        if comm.rank == 0:
            torch.set_default_dtype(torch.float64)
            torch.set_grad_enabled(False)
            torch.manual_seed(7)
        comm.barrier()
        return first, grad, dtype, torch.is_grad_enabled(), torch.get_default_dtype(), torch.initial_seed() == 7

    torch.manual_seed(3)
    state = torch.get_rng_state()
    with torch.no_grad():
        zero, one = labkit.run_ranks(fn, 2)
        assert not torch.is_grad_enabled()
    assert zero[:3] == one[:3] == (zero[0], True, torch.float32)
    assert zero[3:] == (False, torch.float64, True) and one[3:] == (True, torch.float32, False)
    assert torch.get_default_dtype() == torch.float32 and torch.equal(torch.get_rng_state(), state)


def test_eight_ranks_are_quick() -> None:
    """Beside as many threads that hand a turn round as often: no machine's pace is in the bound, and no other work."""

    def of_ranks() -> None:
        simulate(lambda comm: ring(comm, torch.zeros(64)), 8)

    def of_threads() -> None:
        turns = [threading.Semaphore(0) for _ in range(8)]

        def hand_on(rank: int) -> None:
            for _ in range(14):
                turns[rank].acquire()
                turns[(rank + 1) % 8].release()

        threads = [threading.Thread(target=hand_on, args=(rank,)) for rank in range(8)]
        for thread in threads:
            thread.start()
        turns[0].release()
        for thread in threads:
            thread.join()

    def cpu_s(work: Callable[[], None]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    pairs = [(cpu_s(of_ranks), cpu_s(of_threads)) for _ in range(10)]
    ranks_s, threads_s = (min(each) for each in zip(*pairs, strict=True))
    # About 10 times. Ranks that looked again and again whether it is their turn would take hundreds.
    assert ranks_s < 60 * threads_s


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list a process's threads")
def test_no_thread_outlives_its_run() -> None:
    """Not even in what PyTorch does after a thread's last line of Python: there a memory meter's start would crash."""

    def backward(comm: Comm) -> int:
        x = torch.ones(8, 8, requires_grad=True)
        (x @ x).sum().backward()
        return threading.get_native_id()

    for _ in range(30):
        threads, _ = simulate(backward, 4)
        assert not [one for one in threads if Path(f"/proc/self/task/{one}").exists()]
