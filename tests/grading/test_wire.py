"""Frames survive every value that a tree may hold, and nothing that a hostile worker sends gets past the reader."""

from __future__ import annotations

import json
import math
import socket
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load

from grading.worker.protocol.trees import case_from_tree, case_to_tree
from grading.worker.wire.frames import (
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    Channel,
    Closed,
    WireError,
)
from grading.worker.wire.safetensors import buffers_of
from grading.worker.wire.tensor_bytes import pack, unpack
from labkit.exercises import everything
from labkit.spec import Case
from labkit.tree import Opaque, plain, same


@pytest.fixture(params=[False, True], ids=["to the supervisor", "to the worker"])
def pair(request):
    left, right = socket.socketpair()
    yield Channel(left), Channel(right, takes_memory=request.param), left
    left.close()
    right.close()


SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_plain_trees_arrive_unchanged(tree) -> None:
    left, right = map(Channel, socket.socketpair())
    left.send("tree", {"value": tree})
    kind, parts = right.receive()
    assert kind == "tree"
    assert same(parts["value"], tree)
    left.close()
    right.close()


def test_empty_tensors_of_numpy_arrive(pair) -> None:
    """Their stride is 0, which no other tensor's is that comes out of an answer."""
    empty = torch.from_numpy(np.frombuffer(b"", dtype=np.float32).copy())
    assert empty.stride() == (0,)
    left, right, _ = pair
    left.send("tree", {"plain": plain(empty), "packed": pack(empty)}, time.monotonic() + 20)
    _, parts = right.receive(time.monotonic() + 20)
    assert same(parts["plain"], torch.zeros(0)) and same(unpack(parts["packed"]), torch.zeros(0))
    assert same(plain(empty), torch.zeros(0)) and not same(plain(empty), torch.zeros(1))


@pytest.mark.parametrize(
    "dtype",
    [
        *("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
        *("complex64", "int64", "int8", "uint8", "bool"),
    ],
)
def test_tensors_arrive_bit_for_bit(pair, dtype: str) -> None:
    left, right, _ = pair
    tensor = torch.tensor([0.0, -0.0, 1.0, math.inf, math.nan]).to(getattr(torch, dtype))
    for value in (tensor, tensor[:0], tensor[0], tensor[::2]):
        left.send("t", {"value": [{"x": value}]})
        got = right.receive()[1]["value"][0]["x"]
        assert got.dtype == value.dtype and got.shape == value.shape
        assert torch.equal(got.reshape(-1).view(torch.uint8), value.contiguous().reshape(-1).view(torch.uint8))


def test_one_element_of_any_stride_arrives(pair) -> None:
    left, right, _ = pair
    one = torch.arange(7.0)[3::5]
    assert one.stride() == (5,)
    left.send("t", {"value": one})
    assert right.receive()[1]["value"].tolist() == [3.0]
    assert unpack(pack(one)).tolist() == [3.0]


def test_many_large_tensors_arrive_in_their_places(pair) -> None:
    left, right, _ = pair
    # Widths in an order that no body has, and more in all than a socket takes at once.
    sent = [torch.arange(n).to(dtype) for n in (3, 200_001) for dtype in (torch.uint8, torch.float64, torch.bfloat16)]
    thread = threading.Thread(target=left.send, args=("t", {"value": sent}), daemon=True)
    thread.start()
    got = right.receive(time.monotonic() + 30)[1]["value"]
    thread.join()
    assert same(got, sent)
    assert all(tensor.data_ptr() % tensor.element_size() == 0 for tensor in got)
    got[0][0] = 7
    assert sent[0][0] == 0


def test_what_is_announced_takes_no_memory_before_it_comes(pair) -> None:
    _, right, raw = pair
    raw.sendall(struct.pack("<IQ", 2, MAX_BODY_BYTES) + b"{}some")
    Path("/proc/self/clear_refs").write_text("5")
    before_bytes = _peak_bytes()
    with pytest.raises(TimeoutError):
        right.receive(time.monotonic() + 0.2)
    assert _peak_bytes() - before_bytes < MAX_BODY_BYTES / 8


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def test_the_library_reads_what_is_written_without_it() -> None:
    tensors = {"a": torch.ones(3, dtype=torch.int8), "b": torch.rand(2, 5), "c": torch.rand(0, 2), "d": torch.rand(())}
    read = load(b"".join(buffers_of(tensors)))
    assert all(same(read[name], tensor) for name, tensor in tensors.items()) and read.keys() == tensors.keys()


def test_what_is_not_plain_arrives_as_its_name(pair) -> None:
    left, right, _ = pair
    left.send("t", {"value": Opaque("numpy.ndarray", "array([1])")})
    assert right.receive()[1]["value"] == Opaque("numpy.ndarray", "array([1])")


@pytest.mark.parametrize("exercise", everything().values(), ids=lambda exercise: exercise.id)
def test_every_declared_case_survives_the_wire(pair, exercise) -> None:
    left, right, _ = pair
    for case in exercise.public:
        left.send("case", {"case": case_to_tree(case)})
        assert case_from_tree(exercise.public, right.receive()[1]["case"]) == case


def test_a_case_without_fields() -> None:
    assert case_from_tree([Case()], case_to_tree(Case())) == Case()


def _frame(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack("<IQ", len(header), len(body)) + header + body


def _parts(value: object) -> bytes:
    return json.dumps({"kind": "x", "parts": {"d": {"value": value}}}).encode()


GARBAGE = {
    "no json": _frame(b"\xff\xfe{"),
    "no kind": _frame(b"{}"),
    "a list": _frame(b"[1, 2]"),
    "unknown tag": _frame(_parts({"pickle": "gASV"})),
    "two tags": _frame(_parts({"t": "0", "d": {}})),
    "bare list": _frame(_parts([1, 2])),
    "tensor that is not there": _frame(_parts({"t": "7"})),
    "tensor by an odd name": _frame(_parts({"t": {"d": {}}})),
    "deep nesting": _frame(b'{"kind": "x", "parts": ' + b'{"l": [' * 100_000 + b"]}" * 100_000 + b"}"),
    "a long number": _frame(b'{"kind": "x", "parts": ' + b"9" * 10_000 + b"}"),
    "body is no safetensors": _frame(_parts({"t": "0"}), b"\x80\x04\x95not tensors"),
    "body with a lying length": _frame(_parts({"t": "0"}), struct.pack("<Q", 2**60) + b"{}"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_refused_and_never_crashes(pair, name: str) -> None:
    _, right, raw = pair
    threading.Thread(target=raw.sendall, args=(GARBAGE[name],), daemon=True).start()
    with pytest.raises(WireError):
        right.receive(time.monotonic() + 5)


@pytest.mark.parametrize("lengths", [(MAX_HEADER_BYTES + 1, 0), (1, MAX_BODY_BYTES + 1), (2**32 - 1, 2**64 - 1)])
def test_a_frame_over_the_cap_is_refused_before_it_is_read(pair, lengths) -> None:
    _, right, raw = pair
    raw.sendall(struct.pack("<IQ", *lengths))
    with pytest.raises(WireError, match="over the limit"):
        right.receive(time.monotonic() + 5)


def test_a_reader_that_does_not_read_holds_nobody_up(pair) -> None:
    left, _, _ = pair
    with pytest.raises(TimeoutError):
        left.send("t", {"value": torch.zeros(10_000_000)}, time.monotonic() + 0.1)


def test_silence_ends_at_the_deadline(pair) -> None:
    _, right, raw = pair
    with pytest.raises(TimeoutError):
        right.receive(time.monotonic() + 0.05)
    raw.sendall(struct.pack("<IQ", 100, 0) + b"half")
    with pytest.raises(TimeoutError):
        right.receive(time.monotonic() + 0.05)


def test_an_answer_that_came_in_time_is_read_late() -> None:
    """The supervisor's machine may stand still; that is not the student's time."""
    ours, theirs = socket.socketpair()
    Channel(theirs).send("observed", {"got": 1})
    assert Channel(ours).receive(deadline=time.monotonic() - 5) == ("observed", {"got": 1})
    with pytest.raises(TimeoutError):
        Channel(ours).receive(deadline=time.monotonic() - 5)


def test_hanging_up_between_frames_is_told_apart_from_hanging_up_inside_one(pair) -> None:
    left, right, raw = pair
    raw.sendall(b"\x01\x02")
    left.close()
    with pytest.raises(WireError, match="middle"):
        right.receive()
    first, second = socket.socketpair()
    first.close()
    with pytest.raises(Closed):
        Channel(second).receive()
    second.close()
