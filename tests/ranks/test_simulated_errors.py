"""What goes wrong in simulated ranks: every mistake is told in a sentence, and whatever ends one rank ends them all."""

from __future__ import annotations

import contextlib
import signal
import threading
import time

import pytest
import torch

import labkit
from labkit.limits import OverLimit, time_limit
from labkit.ranks import Comm, CommError, RankFailed, simulate
from labkit.ranks.scheduler import Stopped


def told(fn, world_size: int) -> str:
    """The text of the CommError that this ends with."""
    with pytest.raises(CommError) as caught:
        simulate(fn, world_size)
    assert labelled_threads() == []
    return str(caught.value)


def labelled_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("rank ")]


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
