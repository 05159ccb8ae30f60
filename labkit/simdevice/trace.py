"""What ran when: spans on the virtual clock, and the same as a trace that chrome://tracing and Perfetto open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = -1
"""The stream number of the host's own spans, in which it waits."""


@dataclass(frozen=True)
class Span:
    """kind: "kernel", "to device", "to host", "host waits" or "launch", when the host hands work over.

        Span(0, "mm", start_s=5e-6, end_s=9e-6, kind="kernel", nbytes=12288)

    Stream 0 is the default stream.
    """

    stream: int
    name: str
    start_s: float
    end_s: float
    kind: str = "kernel"
    nbytes: int = 0

    @property
    def lane(self) -> str:
        """The name of the row that the span belongs to."""
        return {HOST: "host", 0: "default stream"}.get(self.stream, f"stream {self.stream}")


def busy_s(spans: Sequence[Span], *kinds: str) -> float:
    """How long something of these kinds was running."""
    total_s, end_s = 0.0, 0.0
    for span in sorted((one for one in spans if one.kind in kinds), key=lambda one: one.start_s):
        total_s += max(0.0, span.end_s - max(span.start_s, end_s))
        end_s = max(end_s, span.end_s)
    return total_s


def save_trace(spans: Sequence[Span], path: str | Path) -> None:
    """Write spans in the Trace Event Format, to be opened in Perfetto (ui.perfetto.dev) or chrome://tracing."""
    lanes = {span.stream: span.lane for span in spans}
    events = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": stream + 1, "args": {"name": lane}}
        for stream, lane in sorted(lanes.items())
    ]
    events += [
        {
            "ph": "X",
            "name": span.name,
            "cat": span.kind,
            "pid": 0,
            "tid": span.stream + 1,
            "ts": span.start_s * 1e6,
            "dur": (span.end_s - span.start_s) * 1e6,
            "args": {"bytes": span.nbytes},
        }
        for span in spans
    ]
    Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
