"""A streaming multiprocessor that is filled block by block: what is true of occupancy, and what mistakes make of it.

Registers are given to warps: each warp belongs to the scheduler that has the most registers left. Nothing here is
divided or rounded for a whole SM, so that it is not the formula that students are asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from labkit.exercises.lab10.chips import Chip
from labkit.simt.lanes import WARP


@dataclass(frozen=True)
class Rules:
    """How an SM gives away what it has; each mistake changes one of them.

    Rules(reserved_bytes=0)
    """

    schedulers: int = 4
    register_unit: int = 256
    shared_unit: int = 128
    reserved_bytes: int = 1024
    limits_blocks: bool = True
    limits_warps: bool = True
    limits_registers: bool = True
    limits_shared: bool = True


def in_units(n: float, unit: int) -> int:
    return -(-math.ceil(n) // unit) * unit


@lru_cache(maxsize=4096)
def resident_blocks(threads: int, registers: int, shared_bytes: int, chip: Chip, rules: Rules = Rules()) -> int:
    """How many blocks fit on the SM at once."""
    warps = max(1, -(-threads // WARP))
    per_warp = in_units(WARP * registers, rules.register_unit)
    per_block = in_units(shared_bytes + rules.reserved_bytes, rules.shared_unit)
    left = [chip.registers // rules.schedulers] * rules.schedulers
    n_blocks = n_warps = taken_bytes = 0
    while True:
        n_warps, taken_bytes = n_warps + warps, taken_bytes + per_block
        over = (
            rules.limits_warps and n_warps > chip.max_warps,
            rules.limits_blocks and n_blocks + 1 > chip.max_blocks,
            rules.limits_shared and taken_bytes > chip.shared_bytes,
        )
        if any(over):
            return n_blocks
        for _ in range(warps if rules.limits_registers else 0):
            roomy = max(range(rules.schedulers), key=lambda one: left[one])
            left[roomy] -= per_warp
            if left[roomy] < 0:
                return n_blocks
        n_blocks += 1


def in_use(n_blocks: int, threads: int, registers: int, shared_bytes: int, chip: Chip) -> str:
    """What so many blocks would take of an SM, in words: "48 of 64 warps, 12 of 32 blocks, …"."""
    rules = Rules()
    warps = -(-threads // WARP)
    per_block = in_units(shared_bytes + rules.reserved_bytes, rules.shared_unit)
    per_warp = in_units(WARP * registers, rules.register_unit)
    return (
        f"{n_blocks * warps:,} of {chip.max_warps} warps, {n_blocks:,} of {chip.max_blocks} blocks, "
        f"{per_warp:,} registers for each warp (a quarter of the SM's has room for {chip.registers // 4 // per_warp}), "
        f"{n_blocks * per_block:,} of {chip.shared_bytes:,} bytes of shared memory"
    )
