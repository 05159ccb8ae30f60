"""Graphs, with the methods of `torch.cuda.CUDAGraph`: kernels that are captured once and replayed by a single launch.

    static_x = torch.zeros(8, 16, device=sim.device)
    step(static_x)                       # warm-up: whatever happens only the first time is not to be captured
    g = sim.CUDAGraph()
    with sim.graph(g):
        static_y = step(static_x)        # runs nothing
    static_x.copy_(batch)
    g.replay()                           # runs all of it, into static_y

A replay reads and writes at the addresses of the capture. If a tensor of the capture is gone, or nobody has written to
the input since the replay before, `sim.stale` names it. What a replay leaves out, as on CUDA: Python code, and numbers
of the host, which stay as they were. Left out of the simulation: streams beside the captured one, copies between host
and device, what an `empty_cache` may not give back, and that two graphs of one pool overwrite each other.
"""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import _disable_current_modes

from labkit.simdevice.capture import INVALIDATED, Capture, CapturedOperation, CaptureError
from labkit.simdevice.commands import Command
from labkit.simdevice.state import DeviceState

Pool = tuple[int, int]
"""A token for the memory of one graph or several."""


class CUDAGraph:
    """One graph. Made by `sim.CUDAGraph()`, captured by `with sim.graph(g):`."""

    def __init__(self, state: DeviceState) -> None:
        self._state = state
        self._number = state.new_graph()
        self._pool: Pool = (self._number, 0)
        self._operations: list[CapturedOperation] | None = None

    def capture_begin(self, pool: Pool | None = None, capture_error_mode: str = "global") -> None:
        """Capture what goes to the current stream from now on. Raises RuntimeError where that cannot be."""
        if self._operations is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        if self._state.current_stream == 0:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them "
                "on the default stream.)"
            )
        if self._state.capture is not None:
            raise CaptureError("CUDA error: operation not permitted when stream is capturing (a second capture)")
        self._pool = pool or self._pool
        with _disable_current_modes():
            self._state.capture = Capture(self._number, self._state.current_stream)

    def capture_end(self) -> None:
        """End the capture. Raises CaptureError where something during it was refused: there is no graph then."""
        capture, self._state.capture = self._state.capture, None
        if capture is None or capture.graph != self._number:
            raise RuntimeError("capture_end() called before capture_begin().")
        with _disable_current_modes(), torch.no_grad():
            capture.undo()
        if capture.error:
            raise CaptureError(f"{INVALIDATED}: {capture.error}") from capture.error
        self._operations = capture.operations

    def replay(self) -> None:
        """Run what was captured, on the current stream, after one launch."""
        if self._operations is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        name = f"graph {self._number}"
        self._state.issue(Command("replay", name, stream=self._state.current_stream, graph=self._number))
        scratch: dict[int, torch.UntypedStorage] = {}
        with _disable_current_modes(), torch.no_grad():
            for operation in self._operations:
                operation.run(scratch)

    def reset(self) -> None:
        """Forget what was captured."""
        self._operations, self._number = None, self._state.new_graph()

    def pool(self) -> Pool:
        """The token of the graph's memory, for another graph that may share it."""
        return self._pool
