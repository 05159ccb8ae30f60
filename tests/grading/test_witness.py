"""Every budget is measured by what a student's process cannot forge, and what its witness objects to."""

from __future__ import annotations

import random
import re
from typing import get_args

import pytest
import torch

from grading.hidden import hidden_of
from grading.supervisor.witness import (
    HALTED_SLACK_BYTES,
    PROBE_SIZES,
    SLACK_BYTES,
    Reading,
    objection,
    probe_readings,
    probes_for,
)
from grading.worker.exercise import _measured
from grading.worker.probes import PROBES
from labkit import exercises
from labkit.measures import MEASURES, Witness
from labkit.meters import METERS
from labkit.meters.compiled import compiled_figures
from labkit.meters.full_size import full_size_figures
from labkit.meters.launch_log.meter import BY_TORCH
from labkit.meters.traffic import TrafficProfile, figures_of
from labkit.oracles import oracle_of
from labkit.ranks.traffic import Traffic, figures
from labkit.spec import MiB

BLOCKED = "02-blocked-sum"


def course_exercises() -> list[str]:
    return [name for name in exercises.everything() if not name.startswith("99")]


def test_every_measure_is_borne_out_by_the_witness_that_it_names() -> None:
    named = {witness: {m.name for m in MEASURES.values() if m.witness == witness} for witness in get_args(Witness)}
    assert set().union(*named.values()) == set(MEASURES)
    # What is kept is part of the peak, which is what is read.
    assert named["outside"] == {Reading("peak_bytes", 0, 0).name, "saved_bytes", "held_bytes"}
    assert named["probe"] == {reading.name for meter in PROBE_SIZES for reading in probe_readings(meter, 1, {})}
    assert named["router"] == set(figures(Traffic((0,), (0,), 0, {}, {})))
    assert named["rerun"] == {*figures_of(TrafficProfile()), BY_TORCH, *compiled_figures([]), *full_size_figures([])}


@pytest.mark.parametrize("name", course_exercises())
def test_every_budget_of_the_course_has_a_witness(name: str) -> None:
    budgets = {budget.key: budget for budget in oracle_of(name).budgets}
    for budget in budgets.values():
        assert MEASURES[budget.name].witness != "inside"
        if MEASURES[budget.name].witness == "outside":
            cases = hidden_of(name).memory_cases(random.Random(0))
            assert cases, f"{name}: hidden cases on which {budget.name} can be seen from outside"
            assert "peak_bytes" in budgets, f"{name}: what is seen from outside is a peak"
            assert not budget.at or exercises.find(name).run.ranks != 1, f"{name}: only ranks halt at a moment"
    if exercises.find(name).run.cpu_s is not None:
        assert exercises.find(name).run.wall_s > exercises.find(name).run.cpu_s


@pytest.mark.parametrize(
    "reading, text",
    [
        (Reading("peak_bytes", 1.0, 5.0 * MiB, limit=1.0 * MiB), None),
        (
            Reading("peak_bytes", 1.0 * MiB, 90.0 * MiB, limit=2.0 * MiB),
            "the meter said 1.0 MiB, but .* grew by 90.0 MiB; 2.0",
        ),
        # What breaks its budget by its own word is judged by it.
        (Reading("peak_bytes", 80.0 * MiB, 90.0 * MiB, limit=2.0 * MiB), None),
        (Reading("peak_bytes", 0.0, 2.0 * SLACK_BYTES, limit=0.0), None),
        (Reading("held_bytes, freed", 0.0, 5.0 * MiB, limit=1.0 * MiB, slack=HALTED_SLACK_BYTES), None),
        (
            Reading("held_bytes, freed", 0.0, 5.1 * MiB, limit=1.0 * MiB, slack=HALTED_SLACK_BYTES),
            "freed: the meter said 0.0 MiB, but .* grew by 5.1 MiB; 1.0",
        ),
        (Reading("ops", 7.0, 7.0, exact=True), None),
        (Reading("ops", 6.0, 7.0, exact=True), "the meter of ops counted 6 where there were 7"),
    ],
)
def test_what_is_objected_to(reading: Reading, text: str | None) -> None:
    found = objection(reading)
    if text is None:
        assert found is None
    else:
        assert found is not None and re.search(text, found)


def test_a_probe_is_compared_figure_by_figure() -> None:
    honest = probe_readings("ops", 30, {"dispatches": 31.0, "flops": 60.0})
    assert [objection(reading) for reading in honest] == [None, None]
    lying = probe_readings("ops", 30, {"dispatches": 31.0, "flops": 59.0})
    assert [objection(reading) for reading in lying] == [None, "the meter of flops counted 59 where there were 60"]


def test_probes_have_secret_sizes_small_and_large() -> None:
    drawn = [probes_for(oracle_of(BLOCKED).budgets, random.Random(seed)) for seed in range(20)]
    assert {meter for probes in drawn for meter, _ in probes} == {"ops"}
    assert all(small <= 60 < 1000 <= large for (_, small), (_, large) in drawn)
    assert len({probes for probes in drawn}) == 20


@pytest.mark.slow
def test_probes_are_counted_in_the_settings_of_the_cases() -> None:
    """Not in those that an honest notebook left."""
    plain = _measured("generated", 24)
    torch.set_default_dtype(torch.float64)
    try:
        assert _measured("generated", 24) == plain and plain["kernel_bytes"] > 0
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("meter", PROBE_SIZES)
def test_an_honest_meter_counts_what_is_in_its_probe(meter: str) -> None:
    rng = random.Random(0)
    for n in [rng.randint(*sizes) for sizes in PROBE_SIZES[meter] for _ in range(4)]:
        claimed: dict[str, float] = {}
        work = PROBES[meter](n)
        with METERS[meter](claimed, {}):
            work()
        assert [objection(reading) for reading in probe_readings(meter, n, claimed)] == [None] * len(claimed)
