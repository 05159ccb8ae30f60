"""What a student would write for `torch.cuda` is what the simulated device understands: names and their parameters."""

from __future__ import annotations

import inspect

import pytest
import torch

from labkit.simdevice import CUDAGraph, Event, Machine, SimDevice, Stream

OURS = {
    *("allocator", "clock", "commands", "host_bytes", "launches", "machine", "max_host_bytes", "now_s", "races"),
    *("stale", "trace"),
}
"""What only a simulated device has: what it tells of itself."""
OF_A_DRIVER = {"cuda_event", "cuda_stream", "priority", "priority_range"}
"""What streams and events have only where PyTorch is built for CUDA."""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def parameters(function: object) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls", "kwargs")]


PAIRS = [
    *((SimDevice, torch.cuda, name) for name in sorted(public(SimDevice) - OURS)),
    *((Stream, torch.cuda.Stream, name) for name in sorted(public(Stream))),
    *((Event, torch.cuda.Event, name) for name in sorted(public(Event))),
    *((CUDAGraph, torch.cuda.CUDAGraph, name) for name in sorted(public(CUDAGraph))),
]


@pytest.mark.parametrize(("ours", "real", "name"), PAIRS, ids=[f"{ours.__name__}.{name}" for ours, _, name in PAIRS])
def test_a_name_is_one_of_pytorchs_with_the_same_parameters(ours: object, real: object, name: str) -> None:
    theirs = getattr(real, name)
    if inspect.isclass(theirs) and name in ("CUDAGraph", "Event", "Stream"):
        theirs = theirs.__new__
    given = parameters(getattr(ours, name))
    assert given == parameters(theirs)[: len(given)]


def test_what_a_stream_and_an_event_of_pytorch_have_is_there() -> None:
    assert public(torch.cuda.Stream) - public(torch.Stream) - OF_A_DRIVER <= public(Stream)
    assert public(torch.cuda.Event) - public(torch.Event) - {"from_ipc_handle", "ipc_handle"} - OF_A_DRIVER <= public(
        Event
    )


def test_there_is_one_device_of_the_machines_name_and_size() -> None:
    with SimDevice(Machine(memory_bytes=10_000, name="a small one")) as sim:
        x = torch.zeros(1000, device=sim.device)
        assert sim.mem_get_info() == (6000, 10_000)
        assert (sim.is_available(), sim.device_count(), sim.current_device()) == (True, 1, 0)
        assert sim.get_device_name() == sim.get_device_properties(0).name == "a small one"
        assert x.device == sim.device


def test_a_stream_is_a_block_of_its_own() -> None:
    with SimDevice() as sim:
        first, second = sim.Stream(), sim.Stream()
        with first, second, first:
            assert sim.current_stream() is first
            x = torch.zeros(4, device=sim.device)
        assert sim.current_stream() is sim.default_stream()
        assert [span.stream for span in sim.trace] == [first.number]
        del x
