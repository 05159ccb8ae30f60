"""The router takes nothing on trust: whatever a rank may send ends in its own case, in words."""

from __future__ import annotations

import contextlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from grading.supervisor.ranks import seat as seats
from grading.supervisor.ranks.router import Router
from grading.supervisor.ranks.seat import RankTrouble
from grading.worker.wire.frames import Channel, WireError
from grading.worker.wire.tensor_bytes import pack, unpack
from labkit.ranks import UNIT
from labkit.ranks.network import FREE_READS
from tests.grading.scripted_ranks import SHAPE, WITHIN_S, X, mark, observed, receive, send, sent


def test_a_message_goes_through(ranks) -> None:
    router, (_, second) = ranks([send(1), sent(1), observed()], [*receive(0), observed()])
    assert [observed.trouble for observed in router.run()] == [None, None]
    assert torch.equal(unpack(second.receive()[1]["value"]), X)
    assert router.traffic().bytes_sent == (24, 0) and router.traffic().rounds == 1


def test_memory_for_messages_is_that_of_the_largest_call(ranks) -> None:
    """Twice its tensors: as a frame and as a tensor. A rank that takes part in nothing has none."""
    meet = {"name": "all_gather", "inputs": [pack(X[:3])], "op": None, "src": None}
    gather = [("enter", meet), ("wait collective", {"number": 0}), observed()]
    router, _ = ranks([send(1), sent(1), *gather], [*receive(0), *gather], gather)
    router.run()
    # What is gathered is three tensors of 12 bytes, and the message of 24 is less.
    assert [router.frames_bytes(rank) for rank in range(3)] == [72, 72, 72]
    router, _ = ranks([send(1), sent(1), observed()], [*receive(0), observed()], [observed()])
    router.run()
    assert [router.frames_bytes(rank) for rank in range(3)] == [48, 48, 0]


def test_an_exchange_that_does_not_fit_ends_the_case(ranks) -> None:
    """Also where no rank complains: each is told, and neither has to hand it on."""
    like = {"shape": [5], "dtype": "float32"}
    meet = {"name": "all_to_all", "inputs": [pack(X), pack(X)], "op": None, "src": None}
    wait = ("wait collective", {"number": 0})
    router, theirs = ranks(
        [("enter", {**meet, "outputs": [SHAPE, SHAPE]}), wait, observed()],
        [("enter", {**meet, "outputs": [like, SHAPE]}), wait, observed()],
    )
    with pytest.raises(RankTrouble, match=r"rank 0 sends float32 of shape \(6,\) to rank 1, which receives it into"):
        router.run()
    for channel in theirs:
        assert [channel.receive()[0] for _ in range(2)] == ["answer", "refused"]


def test_who_owns_the_channel_has_sent_it(ranks) -> None:
    """Whatever else a message says."""
    forged = send(1, rank=0, src=0, source=0, sender=0)
    router, _ = ranks([observed()], [*receive(2), observed()], [forged, sent(1), observed()])
    router.run()
    assert router.traffic().link_bytes == {(2, 1): 24}


def test_nobody_can_wait_for_anothers_message(ranks) -> None:
    """Rank 2 asks for what rank 0 sent to rank 1."""
    form = {"shape": [6], "dtype": "float32"}
    wait = ("wait received", {"source": 0, "number": 0, "like": form, "rank": 1})
    router, _ = ranks([send(1), observed()], [observed()], [wait])
    with pytest.raises(WireError, match="a wait for what was not started"):
        router.run()


def test_what_is_said_after_the_end_is_not_heard(ranks) -> None:
    router, _ = ranks([observed(), send(1), sent(1)], [observed(got=1)])
    assert router.run()[1].got == 1
    assert sum(router.traffic().messages) == 0


def test_one_that_never_answers_costs_no_more_than_its_time(ranks) -> None:
    router, _ = ranks([], [observed()], within_s=0.05)
    with pytest.raises(TimeoutError):
        router.run()
    assert router.dismiss(0.05) is None


def test_one_that_is_silent_at_its_turn_costs_no_more_than_the_patience(ranks) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        Router([Channel(ours)], UNIT, time.monotonic() + WITHIN_S, patience_s=0.05).run()


def test_one_that_never_stops_speaking_is_not_heard_for_ever(ranks, monkeypatch) -> None:
    """Whatever is there already can be read without waiting, also long after the time is over."""
    monkeypatch.setattr(seats, "LATE_S", 0.0)
    router, _ = ranks([("compute", {"seconds": 0.0})] * 30 + [observed()], within_s=-0.01)
    with pytest.raises(TimeoutError):
        router.run()
    assert router.dismiss(-0.01) is None


def test_all_that_can_go_on_are_answered_at_once(ranks) -> None:
    """They work while another one, here until all have heard their answers, has its turn."""
    router, theirs = ranks([("barrier", {})], [("barrier", {})], [("barrier", {})])

    def hear() -> list[str]:
        try:
            return [channel.receive(time.monotonic() + WITHIN_S / 2)[0] for channel in theirs]
        finally:
            for channel in theirs:
                channel.close()

    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(hear)
        with pytest.raises(RankTrouble):
            router.run()
        assert heard.result() == ["answer"] * 3


def test_at_a_moment_all_have_halted_when_they_are_looked_at(ranks, monkeypatch) -> None:
    """Once for each moment, when the last has come and before the first is answered."""
    router, theirs = ranks([mark(4), mark(), observed()], [mark(8), mark(2), observed()])
    looked = []

    def look(label: str) -> None:
        answered = []
        for channel in theirs:
            with contextlib.suppress(TimeoutError):
                answered.append(channel.receive(time.monotonic()))
        looked.append((label, len(answered)))

    monkeypatch.setattr(router._calls, "_at_mark", look)
    router.run()
    # The answers to the first moment are there at the second, and no more.
    assert looked == [("after", 0), ("after", 2)]
    assert [moment.held_bytes for moment in router.traffic().moments] == [(4, 8), (None, 2)]


def test_one_that_dies_before_a_moment_is_named(ranks) -> None:
    router, (_, second, _) = ranks([mark()], [], [mark()])
    second.close()
    with pytest.raises(RankTrouble, match="the process of rank 1 ended") as caught:
        router.run()
    assert caught.value.trouble.kind == "died"


def test_one_that_never_comes_to_a_moment_costs_no_more_than_the_patience(ranks) -> None:
    router, _ = ranks([mark()], [], within_s=0.05)
    with pytest.raises(TimeoutError):
        router.run()


def test_a_moments_name_carries_nothing(ranks) -> None:
    """Who is told it has lost the case, whatever it does then."""
    router, _ = ranks([mark(label="1"), observed()], [mark(label="0"), mark(label="1"), observed()])
    with pytest.raises(RankTrouble, match="deadlock: rank 0 waits at the mark '1' for rank 1"):
        router.run()


def test_what_a_clock_tells_is_counted(ranks) -> None:
    """Rank 0 lets its clock be what it has to say; a rank that only reads its own clock has nothing counted."""
    tell = [("compute", {"seconds": 5.0}), ("now", {}), ("barrier", {})]
    hear = [("barrier", {}), ("now", {})]
    router, (_, second) = ranks([*tell * 6, observed()], [*hear * 6, observed()])
    router.run()
    said = [parts.get("value") for _, parts in (second.receive() for _ in range(12))]
    assert said[1::2] == [5.0 * n for n in range(1, 7)]
    traffic = router.traffic()
    n_counted = 6 - FREE_READS
    assert traffic.link_bytes[0, 1] == 8 * n_counted and traffic.rounds >= n_counted


def test_one_that_hangs_up_is_named(ranks) -> None:
    router, (_, second) = ranks([observed()], [])
    second.close()
    with pytest.raises(RankTrouble, match="the process of rank 1 ended") as caught:
        router.run()
    assert caught.value.trouble.kind == "died"
    assert router.dismiss(0.05) is None


def test_after_a_mistake_all_are_told_that_it_is_over(ranks) -> None:
    stopped = {"kind": "stopped", "text": "", "where": "line 3: comm.barrier()"}
    failed = {"kind": "raised", "text": "rank 1: no", "where": None}
    router, (first, _, third) = ranks(
        [("barrier", {}), observed(trouble=stopped)],
        [observed(trouble=failed)],
        # This one goes on until it asks for something.
        [("compute", {"seconds": 1.0}), ("now", {}), observed(trouble=stopped)],
    )
    with pytest.raises(RankTrouble, match="rank 1: no"):
        router.run()
    assert router.dismiss(WITHIN_S) == {0: "line 3: comm.barrier()", 2: "line 3: comm.barrier()"}
    assert first.receive()[0] == third.receive()[0] == "over"
