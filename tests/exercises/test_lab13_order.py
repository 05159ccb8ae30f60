"""Lab 13, the order of tiles: what the text says in figures, and what the check says of other orders."""

from __future__ import annotations

import random
from itertools import product

import pytest

from grading.hidden import hidden_of
from labkit.check.judge import judge
from labkit.exercises import find
from labkit.exercises.lab13.grouped_order import Order
from labkit.meters.traffic.cache import product_read_bytes
from labkit.oracles import oracle_of
from labkit.oracles.lab13.grouped_order import all_tiles, limit_bytes, read_bytes
from labkit.spec import Observation
from tests.exercises.harness import answers_in, solution_of

PUBLIC = find("13-grouped-order").public


@pytest.fixture(scope="module")
def tile_of():
    pytest.importorskip("triton", reason="Triton is not installed; the lab's set-up imports it")
    return answers_in("13-grouped-order", solution_of("13-grouped-order"))["tile_of"]


def verdict_on(tiles: object, case: Order = PUBLIC[0]):
    run = Observation(case, {}, {"tiles": tiles, "held_bytes": 0}, {})
    return judge(find("13-grouped-order"), oracle_of("13-grouped-order"), [run])


def test_groups_read_b_once_for_each_group(tile_of) -> None:
    rows, cols, group = 7, 9, 3
    tiles = [tile_of(pid, rows, cols, group) for pid in range(rows * cols)]
    assert product_read_bytes(tiles, 1, 1, group + 2, 1) == rows + 3 * cols
    row_by_row = list(product(range(rows), range(cols)))
    assert product_read_bytes(row_by_row, 1, 1, group + 2, 1) == rows + rows * cols


def test_the_a100_of_the_text_waits_for_arithmetic_alone(tile_of) -> None:
    tiles = {"yours": [tile_of(pid, 64, 64, 8) for pid in range(4096)], "rows": list(product(range(64), range(64)))}
    ms = {name: 1e3 * product_read_bytes(one, 8, 108, 152, 128 * 1024 * 2) / 2039e9 for name, one in tiles.items()}
    assert (ms["yours"], ms["rows"]) == (pytest.approx(0.91, abs=0.01), pytest.approx(2.60, abs=0.01))
    assert ms["yours"] < 1e3 * 2 * 8192**3 / 312e12 / 3.5


def test_rows_and_columns_read_too_much_in_every_hidden_draw() -> None:
    for seed in range(20):
        for case in hidden_of("13-grouped-order").cases(random.Random(seed))[:3]:
            by_columns = sorted(all_tiles(case), key=lambda tile: tile[::-1])
            assert min(read_bytes(case, all_tiles(case)), read_bytes(case, by_columns)) > 1.1 * limit_bytes(case)


@pytest.mark.parametrize("order", ["row by row", "column by column"])
def test_what_was_read_is_said_with_its_unit(order: str) -> None:
    tiles = sorted(all_tiles(PUBLIC[0]), key=lambda tile: tile if order == "row by row" else tile[::-1])
    verdict = verdict_on(tiles)
    assert verdict.score == 0 and f"This is {order}" in verdict.hint
    assert "MiB from memory, where groups of 4 rows read" in dict(verdict.rows)["problem"]


@pytest.mark.parametrize(
    "tiles, says",
    [
        ([(0, 0)], "there are tiles that no program takes"),
        ([(0, 0), (0, 0)], "programs 0 and 1 both take tile (0, 0)"),
        ([(0, 0), (12, 0)], "program 1 takes tile (12, 0), which is none of 12 x 16"),
        ([(0.0, 0.0)], "a tile should be a pair of whole numbers"),
        ([3], "a tile should be a pair of whole numbers"),
        (None, "a tile should be a pair of whole numbers"),
        ("no", "a tile should be a pair of whole numbers"),
    ],
)
def test_an_order_that_is_none_is_told_what_is_wrong(tiles: object, says: str) -> None:
    verdict = verdict_on(tiles)
    assert verdict.score == 0 and says in dict(verdict.rows)["problem"]
