"""Lab 09: the allocator's true figures on a trace, and which rule a wrong replay has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labkit.exercises.lab09.allocator import AllocationTrace, Event
from labkit.oracles.hints import once
from labkit.oracles.lab09 import other_rules
from labkit.oracles.lab09.other_rules import Row, rounded_requests, rows_of
from labkit.simdevice import CachingAllocator
from labkit.spec import CANNOT_TELL, CaseRun, Hint, MiB, Oracle, Tree

COLUMNS = ("allocated_bytes", "reserved_bytes", "cudaMallocs", "cudaFrees")
RTOL = 1e-6
N_STEPS = 3


def true_rows(tree: Tree) -> list[Row]:
    return rows_of(CachingAllocator(), tree["trace"])


def driver_ms(run: CaseRun[AllocationTrace], emptied: bool, set_up: bool = True) -> float:
    """What the driver takes in the third step, with or without emptying the cache at the end of each."""
    step = [*run.tree["step"], *[("empty_cache", 0, 0)] * emptied]
    rows = rows_of(CachingAllocator(), [*run.tree["before"] * set_up, *step * N_STEPS])
    before, after = rows[-1 - len(step)], rows[-1]
    return run.case.malloc_ms * (after[2] - before[2]) + run.case.free_ms * (after[3] - before[3])


def true_factor(run: CaseRun[AllocationTrace], set_up: bool = True) -> float:
    """Both kinds of step take step_ms beside what the driver takes. set_up: whether the steps come behind it."""
    with_ms, without_ms = (run.case.step_ms + driver_ms(run, emptied, set_up) for emptied in (True, False))
    return with_ms / without_ms


@once
def first_wrong(run: CaseRun) -> tuple[int, int] | None:
    """Event and column of the first figure that is wrong."""
    for at, (mine, true) in enumerate(zip(run.got["rows"], true_rows(run.tree), strict=True)):
        for column in range(len(COLUMNS)):
            if mine[column] != true[column]:
                return at, column
    return None


def right_rows(run: CaseRun) -> str | None:
    rows, trace = run.got["rows"], run.tree["trace"]
    if len(rows) != len(trace):
        return f"replay_trace returned {len(rows)} rows for {len(trace)} events"
    if any(len(row) != len(COLUMNS) for row in rows):
        return f"each row should have {len(COLUMNS)} numbers: {', '.join(COLUMNS)}"
    found = first_wrong(run)
    if found is None:
        return None
    at, column = found
    kind, ticket, n_bytes = trace[at]
    event = {"malloc": f"malloc of {n_bytes:,} bytes", "free": f"free of ticket {ticket}"}.get(kind, kind)
    want = true_rows(run.tree)[at][column]
    return f"after event {at} ({event}) {COLUMNS[column]} should be {want:,}, and is {rows[at][column]:,}"


def right_factor(run: CaseRun) -> str | None:
    if run.case.kind != "mixed":
        return None
    got, want = run.got["factor"], true_factor(run)
    if abs(got - want) <= RTOL * want:
        return None
    return f"slow_down returned {got:.6g}, and the third step with empty_cache takes {want:.6g} times as long"


def follows(rules: type[CachingAllocator]) -> Callable[[CaseRun[AllocationTrace]], object]:
    """Whether the rows are those of other rules as far as the first wrong one; of a wrong factor alone, who knows."""

    def when(run: CaseRun[AllocationTrace]) -> object:
        found = first_wrong(run)
        if found is None:
            return CANNOT_TELL
        n = found[0] + 1
        return [tuple(row) for row in run.got["rows"][:n]] == rows_of(rules(), run.tree["trace"][:n])

    return when


def is_all_of(*rules: type[CachingAllocator]) -> Callable[[CaseRun[AllocationTrace]], object]:
    """Whether the rows are those of one of these rules to the end; of a wrong factor alone, who knows."""

    def when(run: CaseRun[AllocationTrace]) -> object:
        if first_wrong(run) is None:
            return CANNOT_TELL
        rows = [tuple(row) for row in run.got["rows"]]
        return any(rows == rows_of(one(), run.tree["trace"]) for one in rules)

    return when


def goes_through_one_pool(run: CaseRun[AllocationTrace]) -> object:
    """Where the other pool has nothing to give back, an empty_cache that does nothing looks the same."""
    if is_all_of(other_rules.KeepsEverything)(run):
        return CANNOT_TELL
    return is_all_of(other_rules.KeepsSmallSegments, other_rules.KeepsLargeSegments)(run)


GIVES_BACK = "empty_cache gives back, with a cudaFree each, the segments that are one free block."
BEST_FIT = "Of the free blocks that are large enough, the smallest is taken: the best fit."


def by(rules: Sequence[str], text: str) -> tuple[Hint, ...]:
    return tuple(Hint(follows(getattr(other_rules, name)), text) for name in rules)


def called_the_driver(event: str):
    """Whether an event of this kind is the first at which reserved or the cudaFrees are wrong."""

    def when(run: CaseRun[AllocationTrace]) -> object:
        if first_wrong(run) is None:
            return CANNOT_TELL
        at, column = first_wrong(run)
        return column in (1, 3) and run.tree["trace"][at][0] == event

    return when


def keeps_too_much(run: CaseRun) -> bool:
    """Whether the rows first go wrong at an empty_cache, and more is reserved or fewer cudaFrees were counted."""
    at, _ = first_wrong(run)
    if not called_the_driver("empty_cache")(run):
        return False
    mine, true = run.got["rows"][at], true_rows(run.tree)[at]
    return mine[1] > true[1] or (mine[1] == true[1] and mine[3] < true[3])


def still_counts_freed(run: CaseRun[AllocationTrace]) -> bool:
    """Whether the first figure that is wrong is too much allocated after a free."""
    at, column = first_wrong(run)
    return column == 0 and run.tree["trace"][at][0] == "free" and run.got["rows"][at][0] > true_rows(run.tree)[at][0]


def in_millions(run: CaseRun[AllocationTrace]) -> object:
    """Whether the first figure that is wrong is a segment of so many times 10^6 bytes."""
    if first_wrong(run) is None:
        return CANNOT_TELL
    at, column = first_wrong(run)
    reserved = run.got["rows"][at][1]
    return column == 1 and reserved % 10**6 == 0 and reserved % MiB != 0


def columns_are(got: Tree, column: int, wanted: Sequence[int]) -> bool:
    return [row[column] for row in got["rows"]] == list(wanted)


def requested(trace: Sequence[Event]) -> list[int]:
    live: dict[int, int] = {}
    sums = []
    for kind, ticket, n_bytes in trace:
        if kind != "empty_cache":
            live[ticket] = n_bytes if kind == "malloc" else 0
        sums.append(sum(live.values()))
    return sums


def factor_with(run: CaseRun[AllocationTrace], wanted: float) -> bool:
    return first_wrong(run) is None and abs(run.got["factor"] - wanted) <= RTOL * abs(wanted)


def only(run: CaseRun[AllocationTrace], column: int, cost_ms: float) -> float:
    """The factor, if only the calls in this column took time."""
    step = [*run.tree["step"], ("empty_cache", 0, 0)]
    rows = rows_of(CachingAllocator(), [*run.tree["before"], *step * N_STEPS])
    return (run.case.step_ms + cost_ms * (rows[-1][column] - rows[-1 - len(step)][column])) / run.case.step_ms


def per_tensor_factor(run: CaseRun[AllocationTrace]) -> float:
    """The factor, if the driver were asked for each tensor."""
    case = run.case
    n = sum(kind == "malloc" for kind, _, _ in run.tree["step"])
    return (case.step_ms + n * (case.malloc_ms + case.free_ms)) / case.step_ms


ALLOCATOR = Oracle(
    id="09-allocator",
    judge=(right_rows, right_factor),
    call=lambda run: (
        f"replay_trace of {len(run.tree['trace'])} events; slow_down(before, step, step_ms={run.case.step_ms:g}, "
        f"malloc_ms={run.case.malloc_ms:g}, free_ms={run.case.free_ms:g})"
    ),
    axis="sizes at the limits of the table, and orders of events",
    diagnose=(
        Hint(
            lambda run: (
                columns_are(run.got, 0, [row[1] for row in true_rows(run.tree)])
                or columns_are(run.got, 1, [row[0] for row in true_rows(run.tree)])
            ),
            "Reserved is taken for allocated: allocated counts the blocks that are in use, reserved the segments that "
            "the driver has given.",
        ),
        Hint(
            lambda run: first_wrong(run)[1] == 0 and columns_are(run.got, 0, requested(run.tree["trace"])),
            "Requests are rounded up to multiples of 512 bytes, and allocated counts whole blocks.",
        ),
        *by(["NotRounded"], "Requests are rounded up to multiples of 512 bytes before anything else happens."),
        *by(
            ["RoundedPastMultiples"],
            "A request that is a multiple of 512 bytes stays as it is: -(-n_bytes // 512) * 512 rounds the others up.",
        ),
        *by(
            ["ExactSegments"],
            "From 1 MiB up to 10 MiB a request that finds no block asks the driver for a segment of 20 MiB, not of its "
            "own size.",
        ),
        *by(["UnroundedSegments"], "From 10 MiB on, a segment is the request rounded up to a multiple of 2 MiB."),
        # Up to the first wrong row, a pool that is never emptied or another fit may look as if the rest were at fault.
        Hint(
            goes_through_one_pool,
            "empty_cache goes through both pools: it gives back the unused segments of the small one and of the large "
            "one.",
        ),
        Hint(
            is_all_of(other_rules.FirstFit, other_rules.WorstFit),
            BEST_FIT,
        ),
        Hint(
            lambda run: (
                follows(other_rules.SplitsAlways)(run)
                or (first_wrong(run)[1] == 0 and columns_are(run.got, 0, rounded_requests(run.tree["trace"])))
            ),
            "In the large pool a rest of up to 1 MiB is not split off: it stays part of the block, and counts as "
            "allocated.",
        ),
        *by(["NeverSplits"], "What a request leaves of a block becomes a free block of its own: split it off."),
        *by(["KeepsEverything"], GIVES_BACK),
        *by(
            ["NeverJoins", "JoinsToTheRight", "JoinsToTheLeft"],
            "A block that is freed joins the free blocks to its left and to its right in the same segment.",
        ),
        *by(
            ["OnePool", "OnePoolSplitByRequest", "OnePoolOfSmall", "OnePoolOfLarge"],
            "Requests of up to 1 MiB and larger ones never share a segment: keep two pools apart.",
        ),
        *by(["FirstFit", "WorstFit"], BEST_FIT),
        *by(
            ["LastOfEquals", "LastOfEqualsInASegment", "TakesTheEnd"],
            "Of free blocks of the same size the one in the oldest segment is taken, and there the first: compare "
            "with <, not with <=. And a request takes the front of its block; the rest lies behind it.",
        ),
        *by(
            ["OneMiBIsLarge", "TenMiBShare", "LeavesSmallestRest", "SplitsOneMiB"],
            "Look at the limits in the table: exactly 1 MiB is small, exactly 10 MiB gets a segment of its own, and a "
            "rest is split off from 512 bytes on (small pool) or if it is *more* than 1 MiB (large pool).",
        ),
        Hint(
            still_counts_freed, "A block that is freed no longer counts as allocated: all of its bytes are subtracted."
        ),
        Hint(
            lambda run: follows(other_rules.MiBIsAMillion)(run) or in_millions(run),
            "1 MiB is 2**20 = 1,048,576 bytes, not a million.",
        ),
        Hint(
            called_the_driver("free"),
            "free gives nothing back to the driver: the segment stays reserved for requests to come.",
        ),
        Hint(
            lambda run: CANNOT_TELL if first_wrong(run) is None else keeps_too_much(run),
            GIVES_BACK,
        ),
        Hint(
            called_the_driver("empty_cache"),
            "empty_cache gives back whole segments only: one with a single block in use stays, free parts and all.",
        ),
        Hint(
            lambda run: (
                factor_with(run, only(run, 2, run.case.malloc_ms)) or factor_with(run, only(run, 3, run.case.free_ms))
            ),
            "A step that empties the cache pays twice: a cudaFree for each segment, and a cudaMalloc to have it again.",
        ),
        Hint(
            lambda run: factor_with(run, 1 / true_factor(run)),
            "Upside down: the factor is the time with empty_cache over the time without, 1 or more.",
        ),
        Hint(
            lambda run: factor_with(run, true_factor(run) - 1),
            "Return the factor itself, 1.25 for a step that takes a quarter longer.",
        ),
        Hint(
            lambda run: factor_with(run, true_factor(run, set_up=False)),
            "The set-up is missing: its segments have free pieces that the step's tensors use. Replay `before` ahead "
            "of the three steps.",
        ),
        Hint(
            lambda run: factor_with(run, per_tensor_factor(run)),
            "The driver is asked for segments, not for tensors: count the cudaMallocs and cudaFrees of your replay.",
        ),
        Hint(
            lambda run: first_wrong(run) is None,
            "Replay `before` and then three steps, each with empty_cache at its end, and take the calls of the last "
            "one; do the same without empty_cache.",
        ),
    ),
)
