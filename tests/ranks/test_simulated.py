"""Ranks in one process: right values, exact counts, the same on every run, and every mistake told in a sentence."""

from __future__ import annotations

import contextlib
import signal
import threading
import time

import pytest
import torch

import labkit
from labkit.limits import OverLimit, time_limit
from labkit.ranks import UNIT, Comm, CommError, RankFailed, simulate
from labkit.ranks.scheduler import Stopped
from tests.ranks.algorithms import ALL, bytes_of, ring, rounds_of


def counts(fn, world_size: int) -> tuple:
    """Bytes and messages by rank, rounds, bytes and messages by link."""
    traffic = simulate(fn, world_size)[1]
    return traffic.bytes_sent, traffic.messages, traffic.rounds, traffic.link_bytes, traffic.link_messages


def told(fn, world_size: int) -> str:
    """The text of the CommError that this ends with."""
    with pytest.raises(CommError) as caught:
        simulate(fn, world_size)
    assert labelled_threads() == []
    return str(caught.value)


def labelled_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("rank ")]


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


def test_a_deadlock_is_told_at_once() -> None:
    x = torch.zeros(1)
    assert told(lambda comm: comm.recv(x, 1 - comm.rank), 2) == (
        "deadlock: rank 0 waits for a message from rank 1, rank 1 waits for a message from rank 0"
    )
    # Both send first: the real thing hangs here too, because a send waits for its receiver.
    assert told(lambda comm: (comm.send(x, 1 - comm.rank), comm.recv(x, 1 - comm.rank)), 2) == (
        "deadlock: rank 0 waits for rank 1 to receive, rank 1 waits for rank 0 to receive"
    )
    assert told(lambda comm: comm.rank or comm.recv(x, 1), 2) == (
        "deadlock: rank 0 waits for a message from rank 1, which has finished"
    )
    assert told(lambda comm: comm.rank == 2 or comm.barrier(), 3) == (
        "deadlock: rank 0 waits at a barrier for rank 2, which has finished, "
        "rank 1 waits at a barrier for rank 2, which has finished"
    )
    assert told(lambda comm: comm.recv(x, (comm.rank + 1) % 8), 8).endswith(
        "rank 2 waits for a message from rank 3, and 5 more wait"
    )

    def took_s() -> float:
        began = time.monotonic()
        told(lambda comm: comm.recv(x, (comm.rank + 1) % 8), 8)
        return time.monotonic() - began

    # Some milliseconds; the least of several, because the machine may be busy.
    assert min(took_s() for _ in range(10)) < 1


def test_a_deadlock_points_at_the_line() -> None:
    def stuck(comm: Comm) -> None:
        comm.recv(torch.zeros(1), 1 - comm.rank)

    with pytest.raises(CommError) as caught:
        simulate(stuck, 2)
    assert "stuck" in [entry.name for entry in caught.traceback]


@pytest.mark.parametrize(
    ("zero", "one", "text"),
    [
        ("send(x, 2)", "rank", "rank 0 tries to send to rank 2, but the ranks are the whole numbers 0 to 1"),
        ("recv(x, -1)", "rank", "rank 0 tries to receive from rank -1, but the ranks are the whole numbers 0 to 1"),
        ("send(x, 0.5)", "rank", "rank 0 tries to send to rank 0.5, but the ranks are the whole numbers 0 to 1"),
        ("send(x, 0)", "rank", "rank 0 tries to send to itself: a message needs two ranks"),
        ("recv(x, 0)", "rank", "rank 0 tries to receive from itself: a message needs two ranks"),
        ("send([1.0], 1)", "rank", "rank 0 tries to send a list: it must be a tensor"),
        (
            "send(x, 1)",
            "recv(x[:2], 0)",
            "rank 0 sends float32 of shape (3,) and rank 1 receives it into float32 of shape (2,)",
        ),
        (
            "send(x, 1)",
            "recv(x.half(), 0)",
            "rank 0 sends float32 of shape (3,) and rank 1 receives it into float16 of shape (3,)",
        ),
        ("isend(x, 1)", "rank", "rank 0 sent a message to rank 1 that rank 1 never received"),
        ("isend(x, 1)", "irecv(x, 0)", "rank 1 started to receive from rank 0 and never called wait()"),
        ("isend(x, 1)", "recv(x, 0)", "rank 0 started to send to rank 1 and never called wait()"),
    ],
)
def test_every_mistake_has_its_sentence(zero: str, one: str, text: str) -> None:
    x = torch.zeros(3)
    assert told(lambda comm: eval(f"comm.{one if comm.rank else zero}", {"comm": comm, "x": x}), 2) == text


def test_one_rank_alone() -> None:
    assert labkit.run_ranks(lambda comm: comm.barrier() or comm.world_size, 1) == [1]
    assert "there is only rank 0" in told(lambda comm: comm.send(torch.zeros(1), 1), 1)
    with pytest.raises(ValueError, match="at least one rank"):
        labkit.run_ranks(lambda comm: None, 0)
    with pytest.raises(TypeError, match=r"^world_size is 2.5: it must be a whole number$"):
        labkit.run_ranks(lambda comm: None, 2.5)
    with pytest.raises(TypeError, match=r"^run_ranks calls a function with the communicator .*, and 3 is no function$"):
        labkit.run_ranks(3, 2)
    with pytest.raises(ValueError, match=r"backend is 'mpi': it must be one of simulated, gloo, nccl$"):
        labkit.run_ranks(lambda comm: None, 2, backend="mpi")


def test_an_error_in_one_rank_ends_the_others_and_names_it() -> None:
    ended = []

    def fn(comm: Comm) -> None:
        try:
            if comm.rank == 1:
                raise KeyError("lost")
            comm.barrier()
        except Stopped:
            ended.append(comm.rank)
            raise

    with pytest.raises(RankFailed, match="rank 1 raised KeyError: 'lost'") as caught:
        simulate(fn, 3)
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.rank == 1
    # Rank 2 had not begun.
    assert ended == [0] and labelled_threads() == []


def test_an_exit_and_an_unreadable_error_are_errors_like_any_other() -> None:
    class Unreadable(Exception):
        def __str__(self) -> str:
            raise ValueError

    for error in (SystemExit(), Unreadable()):

        def fn(comm: Comm, error=error) -> None:
            if comm.rank:
                raise error
            comm.barrier()

        with pytest.raises(RankFailed, match=f"rank 1 raised {type(error).__name__}"):
            simulate(fn, 2)


needs_signals = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")


@needs_signals
def test_a_time_limit_ends_an_endless_loop_and_shows_it() -> None:
    def endless(comm: Comm) -> None:
        comm.barrier()
        while comm.rank == 1:
            pass

    with pytest.raises(OverLimit) as caught, time_limit(0.2):
        simulate(endless, 3)
    assert "endless" in [entry.name for entry in caught.traceback]
    assert labelled_threads() == []


@needs_signals
def test_a_loop_that_cannot_be_ended_is_left_behind() -> None:
    release = threading.Event()

    def stubborn(comm: Comm) -> None:
        while not release.is_set():
            with contextlib.suppress(BaseException):
                time.sleep(0.001)

    with pytest.raises(OverLimit), time_limit(0.1):
        simulate(stubborn, 2)
    left = [thread for thread in threading.enumerate() if thread.name.startswith("rank ")]
    release.set()
    assert left
    for thread in left:
        thread.join()


def test_eight_ranks_are_quick() -> None:
    def once() -> float:
        began = time.process_time()
        simulate(lambda comm: ring(comm, torch.zeros(64)), 8)
        return time.process_time() - began

    # About 3 ms; in CPU time, because the machine may be busy.
    assert min(once() for _ in range(10)) < 0.02
