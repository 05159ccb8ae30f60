"""A CUDA memory snapshot as one HTML page that needs no network: allocated and reserved bytes, and what the peak was.

PyTorch's own viewer loads its program from the internet. This page shows less: one timeline and one table.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from labkit.units import in_bytes

N_ROWS = 30
_ALLOCATED = {"alloc": 1, "free_completed": -1}
_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_WIDTH, _HEIGHT = 1000, 320
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>CUDA memory</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 1040px; margin: 2em auto; color: #222 }}
table {{ border-collapse: collapse; width: 100% }} td, th {{ text-align: left; padding: .2em .8em .2em 0;
border-bottom: 1px solid #ddd; vertical-align: top }} td:first-child {{ white-space: nowrap }}
code {{ font-size: 13px }} svg {{ width: 100%; height: auto; background: #fafafa }}</style></head>
<body><h1>CUDA memory</h1>
<p>Peak allocated: <b>{peak}</b> after {at} of {n_events} events. Reserved at most: <b>{reserved}</b>.
Blue: allocated; grey: reserved from the driver; time runs by events.</p>
<svg viewBox="0 0 {width} {height}" role="img" aria-label="allocated and reserved bytes over events">
<polyline fill="none" stroke="#9aa5b1" stroke-width="1.5" points="{reserved_line}"/>
<polyline fill="none" stroke="#1565c0" stroke-width="1.5" points="{allocated_line}"/></svg>
<h2>The largest blocks at the peak</h2>
<p>{older} of the peak had been allocated before the recording began, and has no place.</p>
<table><tr><th>size</th><th>allocated at</th></tr>{rows}</table></body></html>
"""


@dataclass(frozen=True)
class AllocatedBlock:
    """An allocated block: its size and the innermost lines that asked for it.

    AllocatedBlock(2097152, ("train.py, line 31 in step",))
    """

    size_bytes: int
    frames: tuple[str, ...]


@contextmanager
def cuda_snapshot(path: str | Path, max_events: int = 100_000) -> Iterator[None]:
    """Record what the block allocates on the GPU and write it to `path` as HTML.

    Raises RuntimeError without a GPU: `track_memory` works everywhere.
    """
    if not torch.cuda.is_available():
        raise RuntimeError("cuda_snapshot needs a GPU; track_memory measures the same code without one")
    torch.cuda.memory._record_memory_history(max_entries=max_events, stacks="python")
    try:
        yield
    finally:
        snapshot = torch.cuda.memory._snapshot()
        torch.cuda.memory._record_memory_history(enabled=None)
        Path(path).write_text(snapshot_html(snapshot), encoding="utf-8")


def snapshot_html(snapshot: Mapping) -> str:
    """The page for a snapshot as `torch.cuda.memory._snapshot` gives it, all devices after one another."""
    # Devices after one another; an address means something on its own device only.
    events = [
        {**event, "addr": (device, event.get("addr"))}  # an "oom" has none
        for device, trace in enumerate(snapshot["device_traces"])
        for event in trace
    ]
    allocated_change = sum(_change(event, _ALLOCATED) for event in events)
    reserved_change = sum(_change(event, _RESERVED) for event in events)
    # As the trace counts: what was asked for, not what it was rounded to, until the free is completed on all streams.
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"] if block["state"] != "inactive"]
    held = sum(block["requested_size"] for block in blocks)
    reserved_now = sum(segment["total_size"] for segment in snapshot["segments"])
    # What the trace does not explain was there before it.
    allocated, reserved = [max(held - allocated_change, 0)], [max(reserved_now - reserved_change, 0)]
    for event in events:
        allocated.append(allocated[-1] + _change(event, _ALLOCATED))
        reserved.append(reserved[-1] + _change(event, _RESERVED))
    peak = allocated.index(max(allocated))
    alive = _alive(events[:peak])
    top = max(*reserved, *allocated, 1)
    return _PAGE.format(
        peak=in_bytes(allocated[peak]),
        at=peak,
        n_events=len(events),
        reserved=in_bytes(max(reserved)),
        width=_WIDTH,
        height=_HEIGHT,
        reserved_line=_line(reserved, top),
        allocated_line=_line(allocated, top),
        older=in_bytes(allocated[peak] - sum(block.size_bytes for block in alive)),
        rows="".join(_row(block) for block in alive[:N_ROWS]),
    )


def _row(block: AllocatedBlock) -> str:
    lines = "<br>".join(html.escape(frame) for frame in block.frames)
    return f"<tr><td>{in_bytes(block.size_bytes)}</td><td><code>{lines}</code></td></tr>"


def _change(event: Mapping, signs: Mapping[str, int]) -> int:
    return signs.get(event["action"], 0) * event["size"]


def _alive(events: Sequence[Mapping]) -> list[AllocatedBlock]:
    """The blocks allocated by these events and not freed by them, the largest first."""
    alive: dict[int, AllocatedBlock] = {}
    for event in events:
        if event["action"] == "alloc":
            frames = tuple(f"{frame['filename']}:{frame['line']} {frame['name']}" for frame in event.get("frames", ()))
            alive[event["addr"]] = AllocatedBlock(event["size"], _outside_torch(frames))
        elif event["action"] == "free_completed":
            alive.pop(event["addr"], None)
    return sorted(alive.values(), key=lambda block: -block.size_bytes)


def _outside_torch(frames: tuple[str, ...]) -> tuple[str, ...]:
    own = tuple(frame for frame in frames if "/torch/" not in frame and "??" not in frame)
    return (own or frames)[:2]


def _line(values: Sequence[int], top: int) -> str:
    """Points of a staircase, thinned to about one for each pixel; the highest of those left out is kept."""
    per_point = -(-len(values) // _WIDTH)
    thinned = [max(values[i : i + per_point]) for i in range(0, len(values), per_point)]
    step = _WIDTH / max(len(thinned) - 1, 1)
    return " ".join(f"{i * step:.1f},{_HEIGHT - value / top * (_HEIGHT - 10):.1f}" for i, value in enumerate(thinned))
