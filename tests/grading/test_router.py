"""The router takes nothing on trust: whatever a rank may send ends in its own case, in words."""

from __future__ import annotations

import contextlib
import math
import socket
import time
from collections.abc import Callable, Iterator

import pytest
import torch

from grading.supervisor.ranks import calls
from grading.supervisor.ranks import router as turns
from grading.supervisor.ranks import seat as seats
from grading.supervisor.ranks.router import Router
from grading.supervisor.ranks.seat import RankTrouble
from grading.worker.wire.frames import Channel, WireError
from grading.worker.wire.tensor_bytes import blank, pack, unpack
from labkit.ranks import UNIT, Cluster
from labkit.ranks.network import FREE_READS
from labkit.spec import Tree

Frame = tuple[str, dict[str, Tree]]
X = torch.arange(6.0)
WITHIN_S = 20.0


@pytest.fixture
def ranks() -> Iterator[Callable[..., tuple[Router, list[Channel]]]]:
    """A router whose ranks have said all this already, and the ranks' ends."""
    opened: list[Channel] = []

    def make(*said: list[Frame], cluster: Cluster = UNIT, within_s: float = WITHIN_S) -> tuple[Router, list[Channel]]:
        ours, theirs = [], []
        for frames in said:
            one, other = map(Channel, socket.socketpair())
            opened.extend((one, other))
            ours.append(one)
            theirs.append(other)
            for kind, parts in frames:
                other.send(kind, parts, time.monotonic() + WITHIN_S)
        return Router(ours, cluster, time.monotonic() + within_s), theirs

    yield make
    for channel in opened:
        channel.close()


def observed(**parts: Tree) -> Frame:
    return "observed", {"got": None, "measured": {}, "trouble": None, **parts}


def send(to: Tree, tensor: torch.Tensor = X, **more: Tree) -> Frame:
    return "send", {"to": to, "tensor": pack(tensor), **more}


def receive(source: Tree, like: torch.Tensor = X) -> list[Frame]:
    form = {"shape": list(like.shape), "dtype": str(like.dtype).removeprefix("torch.")}
    return [("receive", {"source": source}), ("wait received", {"source": source, "number": 0, "like": form})]


def sent(to: int, number: Tree = 0) -> Frame:
    return "wait sent", {"to": to, "number": number}


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


SHAPE = {"shape": [6], "dtype": "float32"}


def enter(**parts: Tree) -> Frame:
    return "enter", {"name": "all_reduce", "inputs": [pack(X)], "op": "sum", "src": None, **parts}


def mark(held_bytes: Tree = None, label: str = "after") -> Frame:
    return "mark", {"label": label, "held_bytes": held_bytes}


DATA = torch.zeros(24, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (("launch", {}), '"launch" where a call was due'),
        (("x" * 500, {}), '"x{40}" where a call was due'),
        (("send", {"to": 1}), '"send" without all its parts'),
        (send(2), "a rank that there is not"),
        (send(-1), "a rank that there is not"),
        (send(0), "a rank that there is not"),
        (send(True), "a rank that there is not"),
        (send("1"), "a rank that there is not"),
        (send([1]), "a rank that there is not"),
        (("send", {"to": 1, "tensor": X}), "no tensor where one was due"),
        (("send", {"to": 1, "tensor": SHAPE}), "a tensor without its bytes"),
        (("send", {"to": 1, "tensor": {**SHAPE, "bytes": X}}), "a tensor without its bytes"),
        (("send", {"to": 1, "tensor": {**SHAPE, "bytes": DATA[:20]}}), "20 bytes for a tensor of 6 elements"),
        (("send", {"to": 1, "tensor": {**SHAPE, "shape": [10**9] * 9, "bytes": DATA}}), "24 bytes for a tensor of"),
        (("send", {"to": 1, "tensor": {**SHAPE, "shape": [-2, -3], "bytes": DATA}}), "a tensor without a shape"),
        (("send", {"to": 1, "tensor": {**SHAPE, "shape": [6.0], "bytes": DATA}}), "a tensor without a shape"),
        (("send", {"to": 1, "tensor": {**SHAPE, "shape": [1] * 17, "bytes": DATA}}), "a tensor without a shape"),
        (("send", {"to": 1, "tensor": {**SHAPE, "dtype": "qint8", "bytes": DATA}}), "of a dtype that nobody knows"),
        (("send", {"to": 1, "tensor": {**SHAPE, "dtype": ["float32"], "bytes": DATA}}), "a dtype that nobody knows"),
        (sent(1), "a wait for what was not started"),
        (sent(1, [0]), "a wait for what was not started"),
        (sent(1, False), "a wait for what was not started"),
        (("wait collective", {"number": 0}), "a wait for what was not started"),
        (("compute", {"seconds": -1.0}), "a time that is none"),
        (("compute", {"seconds": math.nan}), "a time that is none"),
        (("compute", {"seconds": None}), "a time that is none"),
        (("enter", {"name": "gather", "inputs": [], "op": None, "src": None}), "a collective that nobody knows"),
        (("enter", {"name": ["all_reduce"], "inputs": [], "op": 1, "src": 1}), "a collective that nobody knows"),
        (("enter", {"name": "all_reduce", "inputs": 3, "op": "sum", "src": None}), "a collective that nobody knows"),
        (("enter", {"name": "all_reduce", "inputs": [], "op": "sum", "src": None}), "0 tensors for all_reduce of 2"),
        (
            ("enter", {"name": "reduce_scatter", "inputs": [pack(X)], "op": "sum", "src": None}),
            "1 tensors for reduce_scatter of 2",
        ),
        (("enter", {"name": "all_reduce", "inputs": [pack(X)], "op": "or", "src": None}), "an operation that it has"),
        (("enter", {"name": "broadcast", "inputs": [pack(X)], "op": None, "src": 2}), "from a rank that it has not"),
        (("enter", {"name": "broadcast", "inputs": [pack(X)], "op": "sum", "src": 0}), "an operation that it has"),
        (("enter", {"name": "all_gather", "inputs": [pack(X)], "op": None, "src": 0}), "from a rank that it has not"),
        (("enter", {"name": "all_to_all", "inputs": [pack(X)] * 2, "op": None, "src": None}), "0 tensors to receive"),
        (enter(group=[1]), "a group that there is not"),
        (enter(group=[1, 0]), "a group that there is not"),
        (enter(group=[0, 0]), "a group that there is not"),
        (enter(group=[0, 2]), "a group that there is not"),
        (enter(group=[0.0, 1]), "a group that there is not"),
        (enter(group=[False, True]), "a group that there is not"),
        (enter(group={"0": 1}), "a group that there is not"),
        (enter(group=[]), "a group that there is not"),
        (enter(outputs=[SHAPE]), "1 tensors to receive all_reduce"),
        (enter(outputs=3), "a collective that nobody knows"),
        (("barrier", {"group": [1]}), "a group that there is not"),
        *((("mark", {"label": label}), "a moment without a name") for label in ("", "x" * 61, "a\nb", 3, ["a"])),
        *((mark(held), "memory that cannot be") for held in (-1, 2.0, True, 2**70, "4")),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(ranks, frame: Frame, said: str) -> None:
    router, _ = ranks([frame, observed()], [observed()])
    with pytest.raises(WireError, match=said):
        router.run()


def test_no_message_can_be_had_twice(ranks) -> None:
    router, _ = ranks([send(1), sent(1), observed()], [*receive(0), receive(0)[1]])
    with pytest.raises(WireError, match="a wait for what was not started"):
        router.run()


def test_a_shape_is_only_compared(ranks) -> None:
    """However large it is said to be, nothing of that size is made."""
    huge = ("wait received", {"source": 0, "number": 0, "like": {"shape": [2**40], "dtype": "float32"}})
    router, (_, second) = ranks([send(1), sent(1), observed()], [receive(0)[0], huge, observed()])
    with pytest.raises(RankTrouble):
        router.run()
    kind, parts = second.receive()
    assert kind == "refused" and parts["text"].endswith("rank 1 receives it into float32 of shape (1099511627776,)")
    with pytest.raises(WireError, match="a shape that no tensor has"):
        blank({"shape": [10**30], "dtype": "float32"})


def test_what_pytorch_cannot_reduce_is_refused(ranks) -> None:
    part = ("enter", {"name": "all_reduce", "inputs": [pack(X.to(torch.complex64))], "op": "min", "src": None})
    router, (first, second) = ranks([part, observed()], [part, observed()])
    # One has started what the other was refused.
    with pytest.raises(RankTrouble, match="never called wait"):
        router.run()
    assert first.receive()[0] == "answer"
    kind, parts = second.receive()
    assert kind == "refused" and parts["text"].startswith("all_reduce: ")


def test_a_flood_of_calls_ends_the_case(ranks, monkeypatch) -> None:
    monkeypatch.setattr(turns, "MAX_CALLS", 50)
    router, _ = ranks([("compute", {"seconds": 0.0})] * 60, [observed()])
    with pytest.raises(RankTrouble) as caught:
        router.run()
    assert (caught.value.trouble.kind, str(caught.value)) == ("wall", "its ranks called one another more than 50 times")


def test_a_flood_of_bytes_ends_the_case(ranks, monkeypatch) -> None:
    part = ("enter", {"name": "all_reduce", "inputs": [pack(torch.zeros(1000))], "op": "sum", "src": None})
    for last in (send(1, torch.zeros(1000)), part):
        monkeypatch.setattr(calls, "MAX_BYTES", 6 * 4000)
        router, _ = ranks([send(1, torch.zeros(1000))] * 6 + [last], [observed()])
        with pytest.raises(RankTrouble, match="its ranks sent one another more than") as caught:
            router.run()
        assert caught.value.trouble.kind == "memory"


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
    """They work while another one, here for ever, has its turn."""
    router, theirs = ranks([("barrier", {})], [("barrier", {})], [("barrier", {})], within_s=0.5)
    with pytest.raises(TimeoutError):
        router.run()
    assert [channel.receive(time.monotonic() + 1)[0] for channel in theirs] == ["answer"] * 3


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


def test_a_flood_of_moments_ends_the_case(ranks, monkeypatch) -> None:
    monkeypatch.setattr(calls, "MAX_MARKS", 5)
    router, _ = ranks([mark()] * 6 + [observed()])
    with pytest.raises(RankTrouble, match="its ranks marked more than 5 moments"):
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


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3.5),
        torch.zeros(0, 3),
        torch.arange(12).reshape(3, 4).T,
        torch.ones(2, 3, dtype=torch.complex128).conj(),
        torch.tensor([True, False]),
        torch.randn(5).to(torch.float8_e4m3fn),
        torch.randn(3, 1).expand(3, 4),
        torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16)),
    ],
    ids=lambda tensor: f"{tensor.dtype} {tuple(tensor.shape)}",
)
def test_a_tensor_arrives_as_it_was(tensor: torch.Tensor) -> None:
    back = unpack(pack(tensor))
    assert (back.shape, back.dtype) == (tensor.shape, tensor.dtype)
    assert pack(back)["bytes"].tolist() == pack(tensor)["bytes"].tolist()


def test_a_tensor_of_another_dtype_cannot_be_sent() -> None:
    with pytest.raises(TypeError, match="ranks cannot send one another tensors of dtype float8_e5m2fnuz"):
        pack(torch.ones(2).to(torch.float8_e5m2fnuz))
