"""The table of measures: what is counted is what it names, and a budget can limit nothing else."""

from __future__ import annotations

import importlib.util
import re

import pytest
import torch

from labkit.measures import (
    FULL_SIZE,
    MARKS,
    MEASURES,
    RANKS,
    STORE,
    add_to,
    combined,
    held_of_ranks,
    in_short,
    measure_of,
    of_ranks,
    without_moments,
)
from labkit.meters import METERS
from labkit.ranks import measure_ranks
from labkit.ranks.traffic import figures
from labkit.spec import Budget


def of_meter(meter: str) -> set[str]:
    return {measure.name for measure in MEASURES.values() if measure.meter == meter}


def test_every_meter_has_measures_and_every_measure_a_meter() -> None:
    assert {measure.meter for measure in MEASURES.values()} == {*METERS, RANKS, MARKS, STORE, FULL_SIZE}
    assert all(name == measure.name for name, measure in MEASURES.items())


@pytest.mark.parametrize("meter", METERS)
def test_a_meter_counts_what_the_table_says_and_nothing_else(meter: str) -> None:
    if meter in ("traffic", "compiled") and importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed; this meter counts its kernels")
    measured: dict[str, float] = {}
    with METERS[meter](measured, {}):
        pass
    assert set(measured) == of_meter(meter)


def test_what_ranks_send_is_counted_as_the_table_says() -> None:
    _, traffic = measure_ranks(lambda comm: comm.barrier(), 2)
    assert set(figures(traffic)) == of_meter(RANKS)


def test_what_ranks_hold_at_a_moment_is_a_figure_of_its_own() -> None:
    def program(comm):
        with METERS["memory"]({}, {}):
            held = torch.ones(100 * (comm.rank + 1))
            comm.mark("made")
            comm.mark("made")
            del held
            comm.mark("freed")

    found = figures(measure_ranks(program, 2)[1])
    assert (found["held_bytes, made"], found["held_bytes, freed"]) == (800, 0)
    assert {measure_of(key).name for key in set(found) - of_meter(RANKS)} == of_meter(MARKS)
    assert without_moments(found).keys() == of_meter(RANKS)


def test_a_budget_on_a_moment_names_it_and_no_other_does() -> None:
    budget = Budget("held_bytes", 100, "Free it.", at="freed")
    assert (budget.key, budget.unit) == ("held_bytes, freed", "bytes")
    assert Budget("peak_bytes", 100, "").key == "peak_bytes"
    with pytest.raises(ValueError, match="held_bytes is of a moment"):
        Budget("held_bytes", 100, "")
    with pytest.raises(ValueError, match="peak_bytes is of the whole run"):
        Budget("peak_bytes", 100, "", at="freed")


def test_a_budget_on_something_unknown_says_what_there_is() -> None:
    with pytest.raises(ValueError) as caught:
        Budget("peak_byte", 100, "Keep less.")
    text = str(caught.value)
    assert text.startswith('there is no measure "peak_byte": take one of arithmetic, atomic_bytes, ')
    assert text.endswith("or give it a row in labkit/measures.py and a meter that counts it")
    assert all(re.search(rf"\b{name}\b", text) for name in MEASURES)


def test_a_budgets_unit_is_that_of_its_measure_or_its_own() -> None:
    assert [Budget(name, 1, "").unit for name in ("peak_bytes", "flops", "seconds")] == ["bytes", "FLOP", "seconds"]
    assert Budget("seconds", 1, "", unit="rounds").unit == "rounds"
    with pytest.raises(ValueError, match='no measure "second"'):
        Budget("second", 1, "", unit="rounds")


@pytest.mark.parametrize(
    ("name", "together"),
    [("peak_bytes", 5), ("flops", 12), ("sector_efficiency", 3), ("messages", 5), ("bytes_total", 12)],
)
def test_figures_are_combined_as_the_table_says(name: str, together: float) -> None:
    measured: dict[str, float] = {}
    for value in (4, 5, 3):
        add_to(measured, name, value)
    assert measured == {name: together} and combined(name, (4, 5, 3)) == together
    assert combined(name, ()) == 0


def test_of_ranks_the_worst_counts() -> None:
    ranks = [{"flops": 3, "sector_efficiency": 0.5}, {"flops": 2, "sector_efficiency": 0.25, "of its own": 1}, {}]
    assert of_ranks(ranks) == {"flops": 3, "sector_efficiency": 0.25, "of its own": 1}


def test_of_ranks_what_the_worst_holds_is_named() -> None:
    few, many = ({"flops": 2, "sector_efficiency": 0.5}, {"flops": 3, "sector_efficiency": 0.75})
    held = held_of_ranks(
        [
            (few, {"flops": ["few"], "sector_efficiency": ["half"], "races": ["its own"]}),
            (many, {"flops": ["many"], "sector_efficiency": ["three quarters"]}),
            (many, {"flops": ["as many"]}),
        ]
    )
    assert held == {"flops": ["many"], "sector_efficiency": ["half"], "races": ["its own"]}


def test_what_figures_consist_of_is_kept_in_short() -> None:
    kept = in_short({"flops": [f"{n}" * 300 for n in range(500)], "held_bytes, freed": ["x"], "no measure": ["y"]})
    assert kept.keys() == {"flops", "held_bytes, freed"}
    assert len(kept["flops"]) == 200 and kept["flops"][1] == "1" * 197 + "..."
