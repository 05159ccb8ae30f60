"""How often each basic block of a launch ran: the source of the counts by line, and of the line of an endless loop."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from labkit.simt.faults import Fault

Machine = Any


@dataclass
class Tally:
    """How often each block of a function ran: times, warps and lanes, by block number."""

    times: list[int]
    warps: list[int]
    lanes: list[int]


def spread(m: Machine, counts: defaultdict[int, Counter[str]]) -> None:
    """Add how often each basic block ran to the counts of its instructions' lines."""
    for name, found in m.tallies.items():
        plan = m.plans[name]
        for number, block in enumerate(plan.blocks):
            if not found.times[number]:
                continue
            for pc in range(block.start, block.start + block.n_instructions):
                line = counts[plan.function.code[pc].line]
                line["warp_instructions"] += found.warps[number]
                line["thread_instructions"] += found.lanes[number]
                if plan.flops[pc]:
                    line["flops"] += plan.flops[pc] * found.lanes[number]


def too_much(m: Machine) -> Fault:
    """The fault of a launch that has reached its limit on work: many blocks that end, or few that do not."""
    if m.work - m.work_before < m.max_work // 2:
        text = (
            f"the launch takes more than {m.max_work:,} units of work (threads × instructions), of which "
            f"{m.lanes.first_block:,} of its blocks have taken nearly all. Launch it on less data or with a larger "
            "max_work"
        )
        return Fault("too much work", 0, text, count=1)
    function, number = max(
        ((name, i) for name, tally in m.tallies.items() for i in range(len(tally.times))),
        key=lambda one: m.tallies[one[0]].times[one[1]],
    )
    plan = m.plans[function]
    block = plan.blocks[number]
    lines = [one.line for one in plan.function.code[block.start : block.start + block.n_instructions] if one.line]
    times = max(m.tallies[function].times)
    text = (
        f"still running after {m.work:,} units of work (threads × instructions); this line ran {times:,} times. "
        "If the loop does end, launch it on less data or with a larger max_work"
    )
    return Fault("never ends", lines[-1] if lines else 0, text, count=1)
