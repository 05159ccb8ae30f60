"""What goes wrong in real ranks on gloo: errors, deaths and hangs end with a sentence that names rank and lines.

Functions are defined inside of the tests, as they are in a notebook: they travel to the ranks by value.
"""

from __future__ import annotations

import ctypes
import linecache
import os

import pytest
import torch

from labkit.ranks import (
    Comm,
    CommError,
    RankFailed,
    RanksHung,
    RemoteError,
)
from labkit.ranks.real import MISSING_WAIT
from tests.ranks.real import gloo, told

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@pytest.mark.slow
def test_an_error_names_its_rank_and_its_lines() -> None:
    class Lost(Exception):
        pass

    def fn(comm: Comm) -> None:
        if comm.rank == 1:
            raise Lost("here")
        comm.recv(torch.zeros(1), 1)

    with pytest.raises(RankFailed) as caught:
        gloo(fn, 2)
    assert str(caught.value) == "rank 1 raised Lost: here"
    assert type(caught.value.__cause__).__name__ == "Lost" and caught.value.rank == 1
    lines = caught.value.trace.split("\n")
    assert all(line.startswith("[rank 1] ") for line in lines)
    assert f'"{__file__}"' in lines[0] and "in fn" in lines[0]
    assert lines[1:] == ['[rank 1]     raise Lost("here")', "[rank 1] Lost: here"]


@pytest.mark.slow
def test_a_cell_that_is_no_file_is_shown_by_its_lines_alone() -> None:
    """As in IPython without a kernel, and in some notebooks on the web."""
    name, source, cell = "<ipython-input-1-90af3c>", "def fn(comm):\n    raise ValueError('no')\n", {}
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), cell)
    with pytest.raises(RankFailed) as caught:
        gloo(cell["fn"], 1)
    lines = [f'  File "{name}", line 2, in fn', "    raise ValueError('no')", "ValueError: no"]
    assert caught.value.trace.split("\n") == [f"[rank 0] {line}" for line in lines]


def test_an_error_that_cannot_be_sent_is_told() -> None:
    def fn(comm: Comm) -> None:
        error = ValueError("held")
        error.lock = __import__("threading").Lock()
        raise error

    with pytest.raises(RankFailed, match="rank 0 raised RemoteError: ValueError: held"):
        gloo(fn, 1)


def test_mistakes_have_the_simulator_s_sentences() -> None:
    def wrong_rank(comm: Comm) -> None:
        if comm.rank == 0:
            comm.send(torch.zeros(1), 2)

    assert (
        told(CommError, wrong_rank, 2) == "rank 0 tries to send to rank 2, but the ranks are the whole numbers 0 to 1"
    )

    def never_received(comm: Comm) -> None:
        if comm.rank == 0:
            comm.isend(torch.zeros(1), 1)

    assert told(CommError, never_received, 2) == "rank 0 sent a message to rank 1 that rank 1 never received"

    def other_shape(comm: Comm) -> None:
        if comm.rank == 0:
            comm.send(torch.zeros(4), 1)
        else:
            comm.recv(torch.zeros(2, 2), 0)

    sentence = "rank 0 sends float32 of shape (4,) and rank 1 receives it into float32 of shape (2, 2)"
    assert told(CommError, other_shape, 2) == sentence


def test_what_cannot_be_sent_is_said() -> None:
    lock = __import__("threading").Lock()
    with pytest.raises(TypeError, match=r"cannot be sent to the ranks, .*lock.*: make that inside of the function"):
        gloo(lambda comm: lock, 2)

    text = told(RankFailed, lambda comm: __import__("threading").Lock(), 1)
    assert text.startswith("rank 0 raised TypeError") and "lock" in text


@pytest.mark.parametrize(("code", "how"), [(None, "was ended by SIGKILL"), (3, "ended with exit code 3")])
def test_a_rank_that_dies_is_named_rather_than_those_who_notice(code: int | None, how: str) -> None:
    def fn(comm: Comm) -> None:
        if comm.rank == 1:
            if code is None:
                os.kill(os.getpid(), 9)
            os.write(2, b"out of luck\n")
            os._exit(code)
        comm.barrier()

    with pytest.raises(RankFailed, match=f"^the process of rank 1 {how} before its function returned") as caught:
        gloo(fn, 3)
    assert isinstance(caught.value.__cause__, RemoteError)
    assert str(caught.value.__cause__).endswith("out of luck") == (code == 3)


@pytest.mark.full("ranks")
def test_a_rank_that_crashes_says_at_which_line() -> None:
    def fn(comm: Comm) -> None:
        if comm.rank == 1:
            ctypes.string_at(0)
        comm.barrier()

    with pytest.raises(RankFailed, match=r"^the process of rank 1 was ended by SIGSEGV before") as caught:
        gloo(fn, 2)
    assert "[rank 1]     ctypes.string_at(0)" in caught.value.trace.split("\n")


@pytest.mark.slow
def test_a_hang_ends_with_a_sentence_and_every_stack() -> None:
    def stuck(comm: Comm) -> None:
        if comm.rank == 2:
            return
        comm.recv(torch.zeros(1), 1 - comm.rank)

    with pytest.raises(RanksHung) as caught:
        gloo(stuck, 3, timeout_s=3)
    assert str(caught.value) == (
        "the ranks did not finish in 3 s: rank 0 waits for a message from rank 1, "
        "rank 1 waits for a message from rank 0, rank 2 has finished"
    )
    for rank in (0, 1):
        assert f"[rank {rank}]     comm.recv(torch.zeros(1), 1 - comm.rank)" in caught.value.stacks.split("\n")
    assert "[rank 2]" not in caught.value.stacks


@pytest.mark.slow
def test_a_hang_for_a_missing_wait_says_whose() -> None:
    """A message is lost with the last reference to its Work."""

    def drops(comm: Comm) -> None:
        x = torch.zeros(100_000)
        comm.isend(x, 1 - comm.rank)
        comm.recv(x, 1 - comm.rank)

    with pytest.raises(RanksHung) as caught:
        gloo(drops, 2, timeout_s=3)
    text = str(caught.value)
    assert "without wait() for its isend to rank" in text and text.endswith(MISSING_WAIT)


@pytest.mark.slow
def test_an_endless_loop_is_shown() -> None:
    def endless(comm: Comm) -> None:
        comm.barrier()
        while comm.rank == 1:
            pass
        comm.all_reduce(torch.zeros(1))

    with pytest.raises(RanksHung) as caught:
        gloo(endless, 2, timeout_s=3)
    assert str(caught.value).endswith("rank 0 waits in all_reduce for the others, rank 1 is still running")
    assert "while comm.rank == 1:" in caught.value.stacks or "pass" in caught.value.stacks
