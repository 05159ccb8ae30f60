"""Lab 19: one pass around a ring as a timeline, work above transfers, for a length of the blocks.

The work and the bytes are worked out for a machine that is written down here; no function of the student's is run.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from labkit.figures.lanes import COMPUTE, TRANSFER, Bar, Panel, timeline
from labkit.figures.sliders import with_sliders

HEADS, HEAD_DIM, N_RANKS = 32, 128, 4
FLOPS_PER_S, BYTES_PER_S = 100e12, 25e9
LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768)


def work_ms(length: int) -> float:
    """Two products for each head, scores and output, of which the mask hides half in zigzag."""
    return 1e3 * 4 * HEADS * HEAD_DIM * length**2 / 2 / FLOPS_PER_S


def transfer_ms(length: int) -> float:
    """Keys and values of all heads, 2 bytes a number."""
    return 1e3 * 2 * HEADS * HEAD_DIM * length * 2 / BYTES_PER_S


def ring_steps(length: int = 4096, n_ranks: int = N_RANKS) -> Figure:
    """What one rank does in a forward pass: first one after the other, then with each transfer behind the work."""
    work, transfer = work_ms(length), transfer_ms(length)
    apart, at = [Bar(0, 0.0, work, COMPUTE, "own")], work
    for step in range(1, n_ranks):
        apart += [Bar(1, at, at + transfer, TRANSFER, f"hop {step}")]
        at += transfer
        apart += [Bar(0, at, at + work, COMPUTE, f"block {step}")]
        at += work
    together, begins = [], 0.0
    for step in range(n_ranks):
        name = f"block {step}" if step else "own"
        together.append(Bar(0, begins, begins + work, COMPUTE, name))
        if step < n_ranks - 1:
            together.append(Bar(1, begins, begins + transfer, TRANSFER, f"hop {step + 1}"))
            begins += max(work, transfer)
    ends = {"one after the other": (apart, at), "at the same time": (together, begins + work)}
    panels = [
        Panel(f"{name}: {end:.3g} ms, at work {n_ranks * work / end:.0%} of the time", ("work", "transfer"), bars)
        for name, (bars, end) in ends.items()
    ]
    legend = {"works on a block": COMPUTE, "next block on its way": TRANSFER}
    figure = timeline(panels, legend, f"time, ms ({length:,} tokens on each of {n_ranks} ranks)")
    figure.alt = (
        f"Blocks of {length:,} tokens on {n_ranks} ranks: work on one takes {work:.3g} ms, its transfer {transfer:.3g} "
        "ms. " + "; ".join(panel.title for panel in panels)
    )
    return figure


def ring_steps_player() -> object:
    """`ring_steps` under a slider over the length of a block; without ipywidgets, for 4,096 tokens."""
    return with_sliders(ring_steps, {"length": ("block length", [(f"{n:,}", n) for n in LENGTHS], 4096)})
