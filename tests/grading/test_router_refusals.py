"""Frames that make no sense, and floods of frames: the router refuses them in words."""

from __future__ import annotations

import math

import pytest
import torch

from grading.supervisor.ranks import calls
from grading.supervisor.ranks import router as turns
from grading.supervisor.ranks.seat import RankTrouble
from grading.worker.wire.frames import WireError
from grading.worker.wire.tensor_bytes import blank, pack
from tests.grading.scripted_ranks import DATA, SHAPE, Frame, X, enter, mark, observed, receive, send, sent


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


def test_a_flood_of_moments_ends_the_case(ranks, monkeypatch) -> None:
    monkeypatch.setattr(calls, "MAX_MARKS", 5)
    router, _ = ranks([mark()] * 6 + [observed()])
    with pytest.raises(RankTrouble, match="its ranks marked more than 5 moments"):
        router.run()
