"""Every attack of tests/attacks/, on every tier that works here; and that the matrix can fail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence

import pytest

from grading.__main__ import main
from grading.errors import UserError
from grading.isolation import select_tier
from grading.isolation.tiers import TIERS, tier_named
from grading.verify.attacks import NOT_YET, Attack, filled, load
from grading.verify.batch import BATCH, AttackOutcome, Batch
from grading.verify.matrix import Matrix, as_lines
from grading.verify.run import choose_attacks, run_attacks, stored_stock
from grading.verify.stock import in_words, run_stock
from tests.lanes import DEFAULT_TIER, missing

N_ROWS = 46
ATTACKS = load()
ON_CELLS = [attack for attack in ATTACKS if attack.lab == "00"]
ON_METERS_KERNELS_AND_RANKS = [attack for attack in ATTACKS if attack not in ON_CELLS]
ROWS_OF_THE_BOX = (*range(12, 26), 44, None)
"""What is tried on the view of files, the network, processes, limits, other ranks; and what has no row."""


# --- the corpus


def test_every_row_of_the_table_has_an_attack_or_a_reason() -> None:
    there = {attack.row for attack in ATTACKS}
    waiting = {int(name.split(",")[0]) for name in NOT_YET}
    assert there == {*range(1, N_ROWS + 1), None}, "a number without an attack, or N_ROWS is to be raised"
    assert waiting == {35, 37}


def test_names_say_their_row() -> None:
    """So that a listing of the folder is the table. "26_words" is beyond it and lies beside its like."""
    for attack in ATTACKS:
        first = attack.name.split("_")[0]
        assert attack.row is None or first == f"{attack.row:02}", attack.name


def test_students_of_a_pair_are_far_apart_in_the_class() -> None:
    pair = Attack("note", "leaves a note", twice=True).students
    assert sorted(["mmm-middle", *pair]) == [pair[0], "mmm-middle", pair[1]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ROW = 1\n", "does not say what it tries"),
        ('"""Tries."""\nROWS = 1\n', "declares ROWS, which means nothing: known are: ROW, BEFORE"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused(tmp_path, text: str, said: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(UserError, match=said):
        load(tmp_path)


def test_a_number_without_a_row_is_refused(tmp_path) -> None:
    (tmp_path / "08_bad.py").write_text('"""Tries."""\n')
    with pytest.raises(UserError, match=r"08_bad\.py has a number and no ROW: declare ROW = 8, or name it x_"):
        load(tmp_path)


def test_an_empty_folder_is_refused(tmp_path) -> None:
    with pytest.raises(UserError, match="has no attacks: run this from a full checkout"):
        load(tmp_path)


def test_a_name_that_no_attack_has_is_refused() -> None:
    with pytest.raises(UserError, match="no attack has 99_nothing in its name"):
        choose_attacks(ATTACKS, ["99_nothing"])


def test_places_are_filled_in() -> None:
    assert filled("open('@HOME@/@TOKEN@')", {"HOME": "/h", "TOKEN": "t"}) == "open('/h/t')"


# --- the matrix


def batch(*outcomes: AttackOutcome) -> Batch:
    return Batch("kernel", (AttackOutcome(BATCH, "", 0.0, ()), *outcomes), 1.0, 2, 3)


def test_what_was_not_run_is_never_shown_as_passed() -> None:
    attacks = (Attack("a", "tries"), Attack("b", "tries"))
    matrix = Matrix(attacks, {"kernel": batch(AttackOutcome("a", "failed", 0.0, ()))}, {"bwrap": "bwrap is missing"})
    lines = as_lines(matrix)
    assert "not run: bwrap: bwrap is missing" in lines
    assert lines[3].split() == ["b", "not", "run"]
    assert any(line.startswith("not yet: row 35") for line in lines)


def test_a_breach_is_said_in_words() -> None:
    matrix = Matrix((Attack("a", "tries"),), {"kernel": batch(AttackOutcome("a", "passed", 1.0, ("it earned 1",)))})
    assert "BREACH (passed 1, 1)" in as_lines(matrix)[2]
    assert "BREACH kernel: a: it earned 1" in as_lines(matrix)
    assert [outcome.attack for _, outcome in matrix.breaches] == ["a"]


def test_what_took_long_is_said_and_is_no_breach() -> None:
    slow = AttackOutcome("a", "limit", 0.0, (), wall_s=40.0, slow="it took 40 s, more than 14")
    matrix = Matrix((Attack("a", "tries"),), {"kernel": batch(slow)})
    assert "slow kernel: a: it took 40 s, more than 14" in as_lines(matrix)
    assert matrix.breaches == []


@pytest.mark.full("attacks")
@pytest.mark.timeout(900)
def test_the_matrix_fails_where_nothing_holds_a_submission(tmp_path, capsys) -> None:
    """The control: without isolation, what may run here does harm, and the honest students are graded all the same."""
    only = ("13_read_source", "14_read_classmates", "19_unix_sockets", "43_find_bytecode", "x_proc_environments", "01_")
    arguments = [each for name in only for each in ("--only", name)]
    file = tmp_path / "matrix.json"
    assert main(["verify", "--isolation", "none", *arguments, "--json", str(file)]) == 1
    assert "BREACH none: 13_read_source: the solution is in the stored result" in capsys.readouterr().out
    found = {item["attack"]: item["damage"] for item in json.loads(file.read_text())["tiers"]["none"]["outcomes"]}
    assert {name for name, damage in found.items() if damage} == set(only) - {"01_"}
    assert found[BATCH] == []


def held(attacks: Sequence[Attack], tier: str) -> None:
    """Every one of these attacks is tried, and does no harm."""
    try:
        select_tier(tier)
    except UserError as error:
        missing(f"isolation by {tier}", str(error), "python -m grading doctor")
    matrix = run_attacks(tuple(attacks), (tier,), workers=2)
    assert len(matrix.batches[tier].outcomes) == len(attacks) + 1
    assert not matrix.breaches, "\n".join(as_lines(matrix))


@pytest.mark.full("attacks")
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("tier", TIERS)
def test_no_attack_gets_through(tier: str) -> None:
    held(chosen_for(tier, ON_CELLS), tier)


@pytest.mark.full("attacks")
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("tier", TIERS)
def test_no_attack_on_meters_kernels_or_ranks_gets_through(tier: str) -> None:
    """Most of what they try is tried one by one in less time: test_witness, test_kernels_rerun, test_routed_hostile."""
    held(chosen_for(tier, ON_METERS_KERNELS_AND_RANKS), tier)


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_no_kind_of_attack_gets_through() -> None:
    """One of each row, on the lab that is soonest graded and the tier that is taken by itself: all of them on each tier
    take too long for every day.
    """
    held(one_of_each_row(ON_CELLS), DEFAULT_TIER)


def chosen_for(tier: str, attacks: Sequence[Attack]) -> list[Attack]:
    """All of them; where every submission waits for a sandbox of its own, all that try its walls and one a row else.

    What happens between a program and its judge, and before a program runs, is the same in every tier.
    """
    if not tier_named(tier).sandbox_per_submission:
        return list(attacks)
    on_walls = [attack for attack in attacks if attack.row in ROWS_OF_THE_BOX and runs_something(attack)]
    sample = one_of_each_row([attack for attack in attacks if attack not in on_walls])
    return [attack for attack in attacks if attack in on_walls or attack in sample]


def runs_something(attack: Attack) -> bool:
    return bool(attack.before or attack.after) or attack.answer != Attack.answer


def one_of_each_row(attacks: Sequence[Attack]) -> list[Attack]:
    """The first that is over soonest: an attack that waits for its limit takes that long."""
    found: dict[int | None, Attack] = {}
    for attack in attacks:
        if attack.row not in found or attack.within_s < found[attack.row].within_s:
            found[attack.row] = attack
    return list(found.values())


def test_one_of_each_row_is_one_of_each_row() -> None:
    sample = one_of_each_row(ATTACKS)
    assert len(sample) == len({attack.row for attack in ATTACKS}) >= N_ROWS


def test_every_attack_is_tried_and_what_tries_a_wall_is_on_every_tier() -> None:
    both = [*ON_CELLS, *ON_METERS_KERNELS_AND_RANKS]
    assert sorted(attack.name for attack in both) == [attack.name for attack in ATTACKS]
    for tier in TIERS:
        chosen = [*chosen_for(tier, ON_CELLS), *chosen_for(tier, ON_METERS_KERNELS_AND_RANKS)]
        left_out = [attack for attack in ATTACKS if attack not in chosen]
        assert bool(left_out) == tier_named(tier).sandbox_per_submission
        assert {attack.row for attack in chosen} == {attack.row for attack in ATTACKS}
        assert not [one.name for one in left_out if one.row in ROWS_OF_THE_BOX and runs_something(one)]


# --- the control


def test_the_stored_control_is_of_this_corpus() -> None:
    of_rows = {attack.name for attack in ATTACKS if attack.row is not None and attack.on_stock}
    differ = ", ".join(sorted(of_rows ^ set(stored_stock())))
    assert not differ, f"{differ}: renew tests/attacks/stock.json as tests/attacks/README.md says"


@pytest.mark.full("attacks")
def test_stock_nbgrader_does_what_is_stored_stock() -> None:
    if shutil.which("bwrap") is None:
        missing("bubblewrap", "stock nbgrader is tried in a sandbox only", "sudo apt install bubblewrap")
    sample = choose_attacks(ATTACKS, ["01_patch_compare", "13_read_source", "30_check_rewritten", "31_honest_warning"])
    assert run_stock(sample) == {attack.name: stored_stock()[attack.name] for attack in sample}


def test_words_for_the_control() -> None:
    canaries = {"the solution": "canary-1"}
    told = {"attacker": {"x-check": [1.0, 1.0]}, "honest": {"x-check": [1.0, 1.0]}, "text": "canary-1"}
    assert in_words(told, "x", canaries) == "full marks, read the solution"
    told = {"attacker": None, "honest": {"x-check": [0.0, 1.0]}, "text": ""}
    assert in_words(told, "x", canaries) == "no grade, the honest student's grade is wrong"
    told = {"attacker": {"x-check": [0.5, 1.0]}, "honest": None, "text": "!breach! x"}
    assert in_words(told, "x", canaries) == "0.5 of 1, reached what it was after, the honest student has no grade"
