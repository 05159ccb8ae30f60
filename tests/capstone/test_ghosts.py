"""The published ghosts are what their scripts come to, and an answer is worth what lies between them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labkit.capstone import MACHINES, PUBLIC_SEEDS, Entry, bill, ghosts, ranked, read, share_of, standing, virtual_hours
from labkit.capstone.ghosts import LEVELS
from tests.capstone.ghost_scripts import ghost_scripts, played

SCRIPTS = ghost_scripts()
NAMES = [pytest.param(*key, id="-".join(key)) for key in SCRIPTS]


def test_every_machine_has_a_ghost_that_does_not_fit_and_two_that_count_in_order() -> None:
    for machine in MACHINES:
        levels = ghosts()[machine]
        assert not levels["naive"].fits
        assert levels["bronze"].counts and levels["silver"].counts
        assert levels["silver"].virtual_hours < levels["bronze"].virtual_hours / 1.2
        order = [entry for entry in ranked(list(levels.values()))]
        assert order == [levels[level] for level in reversed(LEVELS[1:]) if level in levels]


@pytest.mark.parametrize(("machine", "level"), NAMES)
@pytest.mark.full("answers")
@pytest.mark.later
@pytest.mark.lab("20")
@pytest.mark.timeout(600)
def test_a_ghosts_script_comes_to_its_published_numbers(machine: str, level: str) -> None:
    published, entry = ghosts()[machine][level], played(SCRIPTS[machine, level])
    assert entry.virtual_hours == pytest.approx(published.virtual_hours, rel=5e-3)
    assert (entry.declared_steps, entry.fits, entry.reached) == (
        published.declared_steps,
        published.fits,
        published.reached,
    )
    assert entry.peak_bytes == published.peak_bytes
    assert entry.losses == pytest.approx(published.losses, abs=0.1)


@pytest.mark.full("answers")
@pytest.mark.later
@pytest.mark.lab("20")
def test_the_bill_of_a_ghost_is_the_published_one_to_the_last_digit_whoever_asks_and_twice() -> None:
    script = read(SCRIPTS["v100", "naive"])
    published = ghosts()["v100"]["naive"]
    for found in (bill(script), bill(script)):
        assert virtual_hours(found.setup_s, found.step_s, script.steps) == published.virtual_hours
        assert found.peak_bytes == published.peak_bytes


def some(hours: float, **more: object) -> Entry:
    return replace(ghosts()["basement"]["silver"], virtual_hours=hours, **more)


def test_an_answer_is_worth_what_lies_between_bronze_and_silver() -> None:
    bronze, silver = (ghosts()["basement"][level] for level in ("bronze", "silver"))

    def share(entry: Entry) -> float:
        return share_of(entry, bronze, silver)

    half_way = (bronze.virtual_hours * silver.virtual_hours) ** 0.5
    assert share(silver) == share(some(silver.virtual_hours / 3)) == 1.0
    assert share(bronze) == pytest.approx(0.5)
    assert share(some(half_way)) == pytest.approx(0.75)
    assert share(some(bronze.virtual_hours * 100)) == 0.2
    assert share(some(1e-3, fits=False)) == share(some(1e-3, reached=False)) == 0.0


def test_a_try_is_told_its_place_the_ghost_ahead_and_the_largest_part_of_its_peak() -> None:
    bronze, silver = (ghosts()["basement"][level] for level in ("bronze", "silver"))
    between = some(0.5 * (bronze.virtual_hours + silver.virtual_hours), digest="mine")
    text = standing(between)
    assert "place 3 of 4 among the ghosts; above it is silver with" in text
    assert f"The largest part of the peak is {between.largest}." in text
    assert "no place on the board" in standing(replace(between, reached=False))
    assert "no ghost is above it" in standing(replace(between, virtual_hours=1e-6))


def test_an_entry_survives_its_json() -> None:
    for levels in ghosts().values():
        for entry in levels.values():
            assert Entry.from_json(entry.to_json()) == entry
            assert set(entry.losses) <= set(map(str, PUBLIC_SEEDS))
