"""What CUDA refuses during a capture is refused, with its words; the capture ends, and the device goes on."""

from __future__ import annotations

import re

import pytest
import torch

from labkit.simdevice import CaptureError, SimDevice
from tests.simdevice.graphs import captured

REFUSED = "CUDA error: operation not permitted when stream is capturing"
INVALIDATED = "CUDA error: operation failed due to a previous error during capture"


def on_a_side_stream(sim: SimDevice, x: torch.Tensor) -> None:
    with sim.stream(sim.Stream()):
        x.add_(1)


def elsewhere(sim: SimDevice, x: torch.Tensor) -> None:
    with sim.stream(sim.Stream()):
        torch.empty(4, device=sim.device)


def waits_for_a_captured_event(sim: SimDevice, x: torch.Tensor) -> None:
    event = sim.current_stream().record_event()
    event.synchronize()


def joins(sim: SimDevice, x: torch.Tensor) -> None:
    sim.Stream().wait_stream(sim.current_stream())


FAULTS = {
    "item": (lambda sim, x: x.sum().item(), f"{REFUSED} (the host would wait for _local_scalar_dense)"),
    "print": (lambda sim, x: str(x), f"{REFUSED} (the host would wait for print)"),
    "mask": (lambda sim, x: x[x > 0], f"{REFUSED} (the host would wait for index)"),
    "synchronize": (lambda sim, x: sim.synchronize(), f"{REFUSED} (the host would wait for the device)"),
    "copy to the device": (
        lambda sim, x: torch.zeros(4).to(sim.device),
        f"{REFUSED} (the host would wait for a copy to device)",
    ),
    "indices of the host": (
        lambda sim, x: x[torch.tensor([0, 1])],
        f"{REFUSED} (a tensor of the host would be copied to the device)",
    ),
    "pinned memory": (
        lambda sim, x: torch.zeros(4).pin_memory(),
        f"{REFUSED} (pinned memory of the host was asked for)",
    ),
    "empty_cache": (lambda sim, x: sim.empty_cache(), f"{REFUSED} (empty_cache)"),
    "memory elsewhere": (elsewhere, f"{REFUSED} (memory outside of the graph's pool was asked for, on stream 2)"),
    "another stream": (on_a_side_stream, "captures one stream at a time (add went to stream 2)"),
    "captured event": (
        waits_for_a_captured_event,
        "CUDA error: operation not permitted on an event last recorded in a capturing stream (the host would wait for "
        "it)",
    ),
    "a stream joins": (joins, "captures one stream at a time (stream 2 would wait for an event of it)"),
    "an event from outside": (
        lambda sim, x: sim.current_stream().wait_stream(sim.default_stream()),
        "CUDA error: dependency created on uncaptured work in another stream (the stream waits for an event that was "
        "recorded elsewhere)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_may_not_happen_during_a_capture(fault: str) -> None:
    """The error comes where it happens; the capture then ends with another, which quotes it, and there is no graph."""
    program, text = FAULTS[fault]
    with SimDevice() as sim:
        x, graph, inside = torch.ones(4).to(sim.device), sim.CUDAGraph(), []
        with pytest.raises(CaptureError, match=re.escape(INVALIDATED)) as ended, sim.graph(graph):
            try:
                program(sim, x)
            except CaptureError as error:
                inside.append(str(error))
        assert len(inside) == 1 and text in inside[0] and inside[0] in str(ended.value)
        with pytest.raises(RuntimeError, match="Called CUDAGraph::replay without a preceding successful capture"):
            graph.replay()
        assert x.tolist() == [1.0] * 4
        assert x.sum().item() == 4, "the device goes on after a failed capture"


def test_a_graph_is_captured_once_on_a_side_stream_and_one_at_a_time() -> None:
    with SimDevice() as sim:
        graph, _ = captured(sim, torch.zeros(2, 3, device=sim.device))
        with pytest.raises(RuntimeError, match="already owns a captured graph"), sim.graph(graph):
            pass
        with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
            sim.CUDAGraph().capture_begin()
        with pytest.raises(RuntimeError, match="capture_end\\(\\) called before capture_begin"):
            sim.CUDAGraph().capture_end()
        graph.reset()
        with sim.graph(graph):
            assert sim.is_current_stream_capturing()
            with pytest.raises(CaptureError, match="a second capture"):
                sim.CUDAGraph().capture_begin()
        assert not sim.is_current_stream_capturing()


def test_a_program_of_ones_own_error_ends_the_capture() -> None:
    with SimDevice() as sim:
        with pytest.raises(KeyError), sim.graph(sim.CUDAGraph()):
            raise KeyError("mine")
        assert not sim.is_current_stream_capturing()
        assert torch.ones(2).to(sim.device).sum().item() == 2
