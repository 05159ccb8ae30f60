"""The benchmark of what is fused: its counts come out again, and lab 12 quotes the committed ones."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not installed; the traffic meter counts its kernels")

from benchmarks import fusing

HOME = Path(__file__).resolve().parents[2]
ROWS = json.loads((HOME / "benchmarks" / "results" / "fusing.json").read_text(encoding="utf-8"))["result"]["rows"]
LAB = (HOME / "solutions" / "12_triton_fusion.py").read_text(encoding="utf-8")


def times_ideal(row: dict, what: str) -> float:
    return row[f"{what}_bytes"] / row["ideal_bytes"]


def test_every_function_was_counted_at_every_size() -> None:
    assert [(row["function"], row["rows"], row["columns"]) for row in ROWS] == [
        (name, *size) for name in fusing.FUNCTIONS for size in fusing.SIZES
    ]


def test_the_labs_table_is_what_was_counted() -> None:
    largest = [row for row in ROWS if (row["rows"], row["columns"]) == fusing.SIZES[-1]]
    told = [
        f"# | {row['function']} | {times_ideal(row, 'eager'):.2f} | {times_ideal(row, 'compiled'):.2f} | "
        f"{row['generated_kernels']}, {row['library_calls']} |"
        for row in largest
    ]
    assert [line for line in LAB.splitlines() if line in told] == told


def test_what_the_lab_says_of_it_is_so() -> None:
    of_function = defaultdict(list)
    for row in ROWS:
        of_function[row["function"]].append((times_ideal(row, "eager"), times_ideal(row, "compiled")))
    assert "twelve functions" in LAB and len(of_function) == 12
    for ratios in of_function.values():
        for by_size in zip(*ratios, strict=True):
            assert max(by_size) - min(by_size) < 0.1
    assert all(compiled <= eager for ratios in of_function.values() for eager, compiled in ratios)
    ideal = [name for name, ratios in of_function.items() if all(compiled == 1 for _, compiled in ratios)]
    gains_nothing = [name for name, ratios in of_function.items() if all(one == other for one, other in ratios)]
    assert (len(ideal), len(gains_nothing)) == (7, 1) and gains_nothing == ["columns over their norms"]
    counts = re.search(r"\*\*Compiled, none of the twelve .*?\*\*", LAB, re.DOTALL)[0]
    assert "Seven reach the ideal, four come closer to it" in counts


@pytest.mark.slow
def test_the_counts_come_out_again() -> None:
    size = fusing.SIZES[0]
    again = fusing.counted({name: fusing.FUNCTIONS[name] for name in ("SwiGLU", "attention")}, (size,))
    assert again == [
        row for row in ROWS if row["function"] in ("SwiGLU", "attention") and (row["rows"], row["columns"]) == size
    ]
