"""docs/map.md: it is fresh, its plans can be followed, and what it offers instead of a skipped lab is there."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace

import nbformat
import pytest

import labkit
from grading.build.cli import ROOT
from grading.build.course_map import PAGE, PLANS, course_map, graph, lab_rows, plan, with_map
from grading.build.table import NoPlaceForTable
from labkit.labs import LABS, Lab, find_lab
from labkit.ranks.comm import Comm

LAST_OF_OURS = "20"
"""A lab that somebody adds to their clone has a later number: it is in no plan and no count of ours."""
STAND_INS = [(lab.id, need, text) for lab in LABS for need, text in lab.instead]


def test_the_page_is_fresh() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_map(text) == text, "to make it: python -m grading build"
    changed = with_map(text, [replace(lab, minutes=lab.minutes + 5) if lab.id == "05" else lab for lab in LABS])
    assert changed != text


def test_the_readme_names_the_plans_and_counts_the_labs() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    weeks = [name.partition(" ")[0] for name in PLANS]
    ours = [lab for lab in LABS if lab.stands and lab.id <= LAST_OF_OURS]
    for said in (f"plans for {', '.join(weeks[:-1])} and {weeks[-1]} weeks", f"{len(ours)} notebook labs"):
        assert text.count(said), f"README.md does not say {said!r}"


def test_without_its_place_it_is_refused() -> None:
    with pytest.raises(NoPlaceForTable, match="it needs the lines <!-- map:begin --> and <!-- map:end -->"):
        with_map("# Map")


def test_an_arrow_leads_from_a_lab_to_those_that_need_it() -> None:
    labs = [Lab("01", "First", "memory", 60), Lab("02", "Second", "memory", needs=("01",))]
    lines = graph(labs).splitlines()
    assert "  L01 --> L02" in lines and '  L01["01 First"]' in lines
    assert '  L02["02 Second"]:::planned' in lines
    for lab in LABS:
        assert graph(LABS).count(f'  L{lab.id}["') == 1


def test_a_row_says_what_stands_in() -> None:
    lab = Lab("03", "Third", "memory", 65, needs=("02",), instead=(("02", "`torch.finfo`"),))
    assert lab_rows([lab]).splitlines()[2:] == ["| 03 Third | 1 h 5 min | – | 02 | `torch.finfo` |"]


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_can_be_followed(name: str) -> None:
    weeks = PLANS[name]
    assert name.startswith(f"{len(weeks)} weeks: ")
    labs = [lab for week in weeks for lab in week]
    assert len(set(labs)) == len(labs) and all(find_lab(lab).stands for lab in labs)
    for index, lab in enumerate(labs):
        assert set(find_lab(lab).needs) <= set(labs[:index]), f"lab {lab} comes before what it needs"
    assert all(sum(find_lab(lab).minutes for lab in week) <= 6 * 60 for week in weeks), "six hours a week"
    assert len(plan(name).splitlines()) == 4 + len(weeks)


def test_the_longest_plan_has_every_lab_that_stands() -> None:
    planned = {lab for week in PLANS["18 weeks: every lab"] for lab in week}
    ours = {lab.id for lab in LABS if lab.stands and lab.id <= LAST_OF_OURS}
    assert planned == ours
    assert all(text in course_map(LABS) for _, _, text in STAND_INS)


@pytest.mark.parametrize(("lab", "need", "text"), STAND_INS, ids=[f"{need} for {lab}" for lab, need, _ in STAND_INS])
def test_what_is_offered_instead_is_there(lab: str, need: str, text: str) -> None:
    names = re.findall(r"`([^`]+)`", text)
    assert names
    for name in names:
        package, _, attribute = name.rpartition(".")
        if package == "comm":
            assert callable(getattr(Comm, attribute))
        elif package == "labkit" and attribute in labkit.__all__:
            assert callable(getattr(labkit, attribute))
        elif package == "labkit":
            assert importlib.import_module(name)
        else:
            assert callable(getattr(importlib.import_module(package), attribute))


@pytest.mark.parametrize("lab", [lab for lab in LABS if lab.stands and lab.needs], ids=lambda lab: lab.id)
def test_an_opening_names_what_the_lab_needs_and_what_stands_in(lab: Lab) -> None:
    (path,) = (ROOT / "notebooks").glob(f"{lab.id}_*.ipynb")
    opening = nbformat.read(path, 4).cells[0].source
    for need, text in lab.instead:
        assert f"If you skipped lab {need}, use {text}." in opening
        assert f"lab {need}" in opening.replace(f"skipped lab {need}", ""), "beside the line of minutes"
