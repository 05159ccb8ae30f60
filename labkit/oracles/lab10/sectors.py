"""Lab 10: requests and sectors as the executor counts them, and what the usual slips make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from labkit.exercises.lab10.sectors import Load
from labkit.oracles.lab10.warps import n_sectors, warps_of
from labkit.simt.lanes import WARP
from labkit.spec import CaseRun, Hint, Observation, Oracle

SECTOR_BYTES = 32


def cost(
    case: Load,
    *,
    line_bytes: int = SECTOR_BYTES,
    size: int | None = None,
    stride: int | None = None,
    offset: int | None = None,
    every: int | None = None,
    through_blocks: bool = False,
    idle_lanes: bool = False,
    masked_lanes: bool = False,
    idle_warps: bool = False,
    past_the_end: bool = False,
    every_lane: bool = False,
) -> tuple[int, int]:
    """(requests, sectors). What is named replaces what the case says, or what a warp does."""
    n_blocks = -(-case.n // case.block)
    block = n_blocks * case.block if through_blocks else case.block
    warps = warps_of((1 if through_blocks else n_blocks, 1), (block, 1))
    counted = warps.x - warps.x[:, :1] if every_lane else warps.x
    asks = warps.there & (past_the_end | (warps.x < case.n)) & (counted % (every or case.every) == 0)
    lanes = asks
    if masked_lanes:
        lanes = warps.there & (warps.x < case.n) & asks.any(1, keepdims=True)
    if idle_lanes:
        lanes = warps.there & asks.any(1, keepdims=True)
    size = case.size if size is None else size
    stride = case.stride if stride is None else stride
    addresses = (case.offset if offset is None else offset) + warps.x * stride * size
    requests = len(asks) if idle_warps else int(asks.any(1).sum())
    # The executor's count is of sectors; of longer lines it is the count of what is nearer by as much.
    return requests, n_sectors(addresses * SECTOR_BYTES // line_bytes, lanes)


def expected(run: CaseRun[Load]) -> dict[str, list[int]]:
    return {"cost": list(cost(run.case))}


def plays(**changes: object) -> Callable[[CaseRun[Load]], bool]:
    """Whether this slip gives what the answer gave."""

    def explains(run: CaseRun[Load]) -> bool:
        return gave(run, cost(run.case, **changes))

    return explains


def gave(run: CaseRun[Load], played: tuple[int, int]) -> bool:
    return list(run.got["cost"]) == list(played)


def without_bytes_of_offset(run: CaseRun[Load]) -> bool:
    """The offset left out, or counted in elements, which is the same where these fill whole sectors."""
    return any(gave(run, cost(run.case, offset=offset)) for offset in (0, run.case.offset * run.case.size))


def every_lane_a_sector(run: CaseRun[Load]) -> bool:
    case = run.case
    return gave(run, (cost(case)[0], -(-case.n // case.every)))


def bytes_by_32(run: CaseRun[Load]) -> bool:
    """What is asked for in all, cut into sectors."""
    case = run.case
    return gave(run, (cost(case)[0], -(-(-(-case.n // case.every) * case.size) // SECTOR_BYTES)))


def each_sector_once(run: CaseRun[Load]) -> bool:
    """One set for the whole launch."""
    case = run.case
    i = np.arange(0, case.n, case.every)
    return gave(run, (cost(case)[0], len(set((case.offset + i * case.stride * case.size) // SECTOR_BYTES))))


def a_request_for_each_lane(run: CaseRun[Load]) -> bool:
    case = run.case
    return gave(run, (-(-case.n // case.every), cost(case)[1]))


def exchanged(run: CaseRun[Load]) -> bool:
    return gave(run, cost(run.case)[::-1])


def one_request_a_block(run: CaseRun[Load]) -> bool:
    case = run.case
    return gave(run, (-(-case.n // case.block), cost(case)[1]))


def in_warps_of_all_threads(run: CaseRun[Load]) -> bool:
    """Requests from the number of threads alone: n / 32 rounded up."""
    return gave(run, (-(-run.case.n // WARP), cost(run.case)[1]))


def full_last_warps(run: CaseRun[Load]) -> bool:
    """Every warp has 32 lanes, those of a block's last warp going on into the next block."""
    case = run.case
    warps = warps_of((-(-case.n // case.block), 1), (case.block, 1))
    x = warps.x[:, :1] + np.arange(WARP)
    reads = (x < case.n) & (x % case.every == 0)
    return gave(run, (int(reads.any(1).sum()), n_sectors(case.offset + x * case.stride * case.size, reads)))


def of_the_first_warp(run: CaseRun[Load]) -> str:
    """What one can check by hand: "the first warp alone has lanes that read: 32; …"."""
    case = run.case
    n_lanes = len(range(0, min(WARP, case.block, case.n), case.every))
    last = case.offset + (n_lanes - 1) * case.every * case.stride * case.size
    _, n_touched = cost(replace(case, n=min(WARP, case.block, case.n)))
    return (
        f"the first warp alone has lanes that read: {n_lanes}; their elements lie within bytes {case.offset:,} to "
        f"{last + case.size - 1:,} past a multiple of 32; sectors that hold them: {n_touched}. The launch is the sum "
        "over all warps"
    )


def called(run: Observation) -> str:
    case = run.case
    return (
        f"load_cost(n={case.n}, block={case.block}, size={case.size}, stride={case.stride}, offset={case.offset}, "
        f"every={case.every})"
    )


SECTORS = Oracle(
    id="10-sectors",
    expect=expected,
    diagnose=(
        Hint(exchanged, "The two numbers are in the wrong order: return (requests, sectors)."),
        Hint(
            plays(line_bytes=128),
            "This counts lines of 128 bytes. The cache keeps such lines, but memory moves single sectors of 32 bytes.",
        ),
        Hint(
            plays(size=4),
            "This takes every element for 4 bytes. Lane i's address is offset + i * stride * size, with the size that "
            "was given.",
        ),
        Hint(
            plays(size=1),
            "This counts elements as if each had one byte: multiply the index by size to get an address in bytes.",
        ),
        Hint(plays(stride=1), "The stride is missing: thread i reads x[i * stride]."),
        Hint(
            without_bytes_of_offset,
            "The offset is missing, or taken in elements: x[0] lies `offset` bytes past a multiple of 32, so a warp's "
            "bytes may begin in the middle of a sector and end in one more.",
        ),
        Hint(
            plays(past_the_end=True),
            "Threads past n are counted: the last block has more threads than there are elements left, and a thread "
            "reads only if i < n.",
        ),
        Hint(
            plays(every_lane=True),
            "The condition asks i, the thread's number in the whole grid, and not its place in the warp: a warp whose "
            "i has no multiple of `every` reads nothing.",
        ),
        Hint(
            plays(every=1),
            "`every` is missing: of the lanes below n, only those whose i is a multiple of it read.",
        ),
        Hint(
            plays(idle_lanes=True, idle_warps=True),
            "This counts lanes and warps that do not read: those past n, and those whose i is no multiple of `every`.",
        ),
        Hint(
            plays(masked_lanes=True),
            "`every` is missing: lanes whose i is no multiple of it do not read, and touch no sector.",
        ),
        Hint(
            plays(idle_lanes=True),
            "Lanes that do not read are counted: those past n, and those whose i is no multiple of `every`, touch no "
            "sector.",
        ),
        Hint(
            plays(idle_warps=True),
            "Warps in which no lane reads are counted as requests: a warp whose lanes all skip the load makes none.",
        ),
        Hint(
            plays(through_blocks=True),
            "A warp never holds threads of two blocks. Each block begins a warp of its own, and where block is no "
            "multiple of 32 its last warp has fewer than 32 lanes.",
        ),
        Hint(
            full_last_warps,
            "The last warp of a block is counted with 32 lanes, although the block ends before: its lanes end with the "
            "block's last thread, and those of the next block are counted there.",
        ),
        Hint(
            in_warps_of_all_threads,
            "The requests are n / 32, rounded up. But a block whose size is no multiple of 32 ends with a warp that is "
            "not full, and a warp in which no lane reads makes no request.",
        ),
        Hint(
            a_request_for_each_lane,
            "This counts lanes. A request is one instruction of a whole warp, however many of its lanes read.",
        ),
        Hint(one_request_a_block, "A request is one instruction of one warp, so a block of 256 threads makes 8."),
        Hint(
            every_lane_a_sector,
            "Every lane is counted as a sector of its own. Lanes of one warp that touch the same 32 bytes share them.",
        ),
        Hint(
            each_sector_once,
            "Each sector is counted once in the whole launch. Two warps that touch the same sector both ask for it: "
            "count the different ones of each warp, then add up.",
        ),
        Hint(
            bytes_by_32,
            "The bytes that are asked for, divided by 32, are the least there could be. Count the sectors in which "
            "they lie, for each warp.",
        ),
    ),
    fact=of_the_first_warp,
    places={"cost.0": "number of requests", "cost.1": "number of sectors"},
    axis="other sizes, strides, offsets and blocks",
    call=called,
)
