"""Lab 13: what is true of an order of tiles that uses the cache, and what the usual mistakes look like.

Any order is right that takes every tile once and reads as little from memory as groups of rows do, or less.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from labkit.exercises.lab13.grouped_order import BLOCK_BYTES, Order, far_programs
from labkit.meters.traffic.cache import Tile, product_read_bytes
from labkit.spec import CANNOT_TELL, CaseRun, Hint, KiB, Observation, Oracle
from labkit.units import in_bytes

SLACK = 1.1
HELD_BYTES = 64 * KiB
"""Enough for a few numbers and what a student prints; a list of tiles takes megabytes."""


def all_tiles(case: Order) -> list[Tile]:
    return list(product(range(case.n_tiles_m), range(case.n_tiles_n)))


def arranged(case: Order, key: Callable[[Tile], object]) -> list[Tile]:
    return sorted(all_tiles(case), key=key)


def read_bytes(case: Order, tiles: list[Tile]) -> int:
    return product_read_bytes(tiles, case.n_steps, case.at_once, case.n_kept, BLOCK_BYTES)


def limit_bytes(case: Order) -> float:
    """What groups of rows read, with some slack."""
    return SLACK * read_bytes(case, arranged(case, lambda tile: (tile[0] // case.group, tile[1])))


def given(got: dict, name: str = "tiles") -> list[Tile]:
    """The tiles that came back. Raises ValueError where one is no pair of whole numbers."""
    tiles = []
    for tile in got[name]:
        row, col = tile
        if type(row) is not int or type(col) is not int:
            raise ValueError("no whole numbers")
        tiles.append((row, col))
    return tiles


def each_tile_once(run: CaseRun) -> str | None:
    try:
        tiles = given(run.got)
    except (TypeError, ValueError):
        return "a tile should be a pair of whole numbers, (row of tiles, column of tiles)"
    wanted = set(all_tiles(run.case))
    seen: dict[Tile, int] = {}
    for pid, tile in enumerate(tiles):
        if tile not in wanted:
            return f"program {pid} takes tile {tile}, which is none of {run.case.n_tiles_m} x {run.case.n_tiles_n}"
        if tile in seen:
            return f"programs {seen[tile]} and {pid} both take tile {tile}"
        seen[tile] = pid
    return None if len(seen) == len(wanted) else "there are tiles that no program takes"


def reads_little(run: CaseRun) -> str | None:
    read, limit = read_bytes(run.case, given(run.got)), limit_bytes(run.case)
    if read <= limit:
        return None
    in_groups = f"groups of {run.case.group} rows read {in_bytes(limit / SLACK)}"
    return f"this order reads {in_bytes(read)} from memory, where {in_groups}"


def makes_no_list(run: CaseRun) -> str | None:
    held, size = run.got["held_bytes"], f"{run.case.large[0]} x {run.case.large[1]}"
    return f"one call with {size} tiles holds {in_bytes(held)} of memory" if held > HELD_BYTES else None


makes_no_list.hint = (
    "Every program computes its tile for itself when it starts: find it by arithmetic with //, % and min, without a "
    "list of tiles."
)


def goes_on_at_large_sizes(run: CaseRun[Order]) -> str | None:
    """Three columns' worth of programs share about as few rows and columns of tiles as in a group of rows."""
    tiles, (n_tiles_m, n_tiles_n), far = given(run.got, "far_tiles"), run.case.large, far_programs(run.case)
    inside = all(0 <= row < n_tiles_m and 0 <= col < n_tiles_n for row, col in tiles)
    rows, cols = {row for row, _ in tiles}, {col for _, col in tiles}
    if inside and len(set(tiles)) == len(far) and len(rows) + len(cols) <= SLACK * (run.case.group + 3):
        return None
    which = f"programs {far[0]} to {far[-1]} of {n_tiles_m} x {n_tiles_n} tiles"
    return f"{which} take {len(set(tiles))} tiles in {len(rows)} rows and {len(cols)} columns"


def by_tiles(when: Callable[[CaseRun[Order]], object]) -> Callable[[CaseRun[Order]], object]:
    """A hint's condition on the tiles, which cannot tell where these are right and only the large product's are not."""

    def condition(run: CaseRun[Order]) -> object:
        return when(run) if each_tile_once(run) or reads_little(run) else CANNOT_TELL

    return condition


def in_order(key: Callable[[Order, Tile], object]) -> Callable[[CaseRun[Order]], bool]:
    return lambda run: given(run.got) == arranged(run.case, lambda tile: key(run.case, tile))


def wrong_in_last_group(run: CaseRun[Order]) -> bool:
    """The whole groups of rows are all right, each tile once, and what follows is not."""
    case = run.case
    if sorted(given(run.got)) == all_tiles(case):
        return False
    whole = case.n_tiles_m // case.group * case.group
    first = given(run.got)[: whole * case.n_tiles_n]
    return whole < case.n_tiles_m and sorted(first) == [tile for tile in all_tiles(case) if tile[0] < whole]


def as_low_as_the_last(run: CaseRun[Order]) -> bool:
    """All groups have the height of the last one, which is lower."""
    case = run.case
    n_programs, height = case.group * case.n_tiles_n, case.n_tiles_m % case.group
    firsts_and_rests = [(pid // n_programs * case.group, pid % n_programs) for pid in range(len(given(run.got)))]
    return given(run.got) == [(first + rest % height, rest // height) for first, rest in firsts_and_rests]


def in_groups_of_another_height(run: CaseRun[Order]) -> bool:
    heights = range(2, run.case.n_tiles_m)
    return any(in_order(lambda _, tile, g=height: (tile[0] // g, tile[1]))(run) for height in heights)


def swapped(run: CaseRun[Order]) -> bool:
    """Each tile once, as (column, row)."""
    return sorted((row, col) for col, row in given(run.got)) == all_tiles(run.case) and sorted(
        given(run.got)
    ) != all_tiles(run.case)


def in_students_names(run: Observation) -> str:
    case = run.case
    asked = f"tile_of(pid, n_tiles_m={case.n_tiles_m}, n_tiles_n={case.n_tiles_n}, group={case.group}) for every pid"
    chip = f"{case.at_once} at once" if case.at_once > 1 else "one after the other"
    return f"{asked}; programs run {chip}, and the cache holds {case.n_kept} blocks"


GROUPED_ORDER = Oracle(
    id="13-grouped-order",
    judge=(each_tile_once, makes_no_list, reads_little, goes_on_at_large_sizes),
    call=in_students_names,
    diagnose=(
        Hint(
            by_tiles(in_order(lambda case, tile: tile)),
            "This is row by row: programs that run at the same time share a row of A and need nearly all of B. Finish "
            "`group` rows together, column after column.",
        ),
        Hint(
            by_tiles(in_order(lambda case, tile: (tile[1], tile[0]))),
            "This is column by column: programs that run at the same time share a column of B and need nearly all of "
            "A. Stop after `group` rows and go on with the next column.",
        ),
        Hint(
            by_tiles(in_order(lambda case, tile: (tile[1] // case.group, *tile))),
            "These are groups of `group` columns: take groups of rows, and in each of them column after column.",
        ),
        Hint(
            by_tiles(in_groups_of_another_height),
            "These are groups of another height: all but the last have `group` rows, whatever that number is.",
        ),
        Hint(by_tiles(swapped), "Row and column are swapped: return (row of tiles, column of tiles), in this order."),
        Hint(
            by_tiles(wrong_in_last_group),
            "Only the last group is wrong. It has fewer rows where `group` does not divide n_tiles_m: its height is "
            "min(group, n_tiles_m - first row).",
        ),
        Hint(
            by_tiles(as_low_as_the_last),
            "Only the last group has n_tiles_m % group rows, the others have `group`: the height is "
            "min(group, n_tiles_m - first row).",
        ),
        Hint(
            by_tiles(lambda run: sorted(given(run.got)) != all_tiles(run.case)),
            "Not every tile is taken once. A group has group * n_tiles_n programs: divide pid by that, and count the "
            "rest within the group.",
        ),
        Hint(
            goes_on_at_large_sizes,
            "The order changes where there are many tiles: use the same formula for all sizes.",
        ),
    ),
)
