"""Hand-ins that were made to count as a classmate's, to keep hers out, or to choose their own time.

Each row is a whole class: what mallory put into her part of the archive stands among honest submissions.
"""

from __future__ import annotations

import datetime

import pytest

from grading.intake.arrived import Arrivals, ArrivedFile
from grading.intake.choose import Choice, ReadingOptions, choose
from grading.intake.roster import Roster

LAB = "00_start_here"
NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
LATER = NOON + datetime.timedelta(days=1)
MOODLE = "_assignsubmission_file_"


def class_of(honest: dict[str, str], mallorys: dict[str, bytes | None], **options: object) -> Choice:
    """What is chosen from everybody's files; hers are newer than all others. honest: paths by student."""
    entries = [ArrivedFile(path, 10, NOON, bytes) for path in honest.values()]
    entries += [ArrivedFile(path, 10, LATER, lambda data=data: data or b"") for path, data in mallorys.items()]
    return choose(Arrivals(entries), LAB, ReadingOptions(**options))


def chosen(choice: Choice) -> dict[str, str]:
    return {candidate.student: candidate.entry.path for candidate in choice.candidates}


def reasons(choice: Choice) -> dict[str, str]:
    return {item.path: item.reason for item in choice.refused}


PLAIN = {"alice": f"alice/{LAB}.ipynb", "bob": f"bob/{LAB}/{LAB}.ipynb"}
ON_MOODLE = {"Alice Doe": f"Alice Doe_55{MOODLE}/{LAB}.ipynb", "Bob": f"Bob_56{MOODLE}/{LAB}.ipynb"}
ON_CANVAS = {"99": f"doealice_99_1000_{LAB}.ipynb", "12": f"bob_12_1001_{LAB}.ipynb"}


@pytest.mark.parametrize(
    ("honest", "path"),
    [
        (PLAIN, f"mallory/alice/{LAB}.ipynb"),
        (PLAIN, f"mallory/alice/{LAB}/{LAB}.ipynb"),
        (PLAIN, f"mallory/{LAB}/alice/{LAB}.ipynb"),
        (PLAIN, f"mallory/submitted/alice/{LAB}/{LAB}.ipynb"),
        (PLAIN, f"mallory/x/y/z/alice/{LAB}.ipynb"),
        (ON_MOODLE, f"Mal_lory_57{MOODLE}/Alice Doe_55{MOODLE}/{LAB}.ipynb"),
        (ON_MOODLE, f"Mallory_57{MOODLE}/Alice Doe_55{MOODLE}/{LAB}.ipynb"),
        (ON_MOODLE, f"Mallory_57{MOODLE}/Alice Doe_55{MOODLE}{LAB}.ipynb"),
        (ON_MOODLE, f"Mallory_57{MOODLE}/x/Alice Doe_55{MOODLE}/x/{LAB}.ipynb"),
        (ON_MOODLE, f"Mallory_57{MOODLE}Alice Doe_55{MOODLE}{LAB}.ipynb"),
        (ON_MOODLE, f"Alice Doe_55{MOODLE}_57{MOODLE}/{LAB}.ipynb"),
        (ON_CANVAS, f"mal_99_34_56_{LAB}.txt.ipynb"),
        (ON_CANVAS, "mal_99_34_56_lab.ipynb"),
        (ON_CANVAS, "99_34_56_lab.ipynb"),
        (ON_CANVAS, "mal_99_LATE_34_56_lab.ipynb"),
    ],
)
@pytest.mark.parametrize("alice_came", [True, False])
def test_nothing_of_mallorys_counts_as_alices(honest, path, alice_came) -> None:
    alice, *others = honest
    there = {name: honest[name] for name in ((alice, *others) if alice_came else others)}
    choice = class_of(there, {path: None})
    taken = {student: file for student, file in chosen(choice).items() if file != path}
    assert taken == there, "everybody else's is taken"
    # Nor is hers taken for anybody's where that is not plain.
    assert set(chosen(choice)) <= {*there, "Mallory", "34"}
    if path in reasons(choice):
        assert any(word in reasons(choice)[path] for word in ("could be the student", "two students", "can be read"))


def test_a_refusal_says_what_is_wrong_where_and_what_to_do() -> None:
    path = f"mallory/alice/{LAB}.ipynb"
    assert reasons(class_of(PLAIN, {path: None})) == {
        path: 'it lies in the folder "alice" in "mallory", and either could be the student: move it to '
        f"mallory/{LAB}.ipynb, or collect what is in mallory"
    }
    path = f"Mal_lory_57{MOODLE}/Alice Doe_55{MOODLE}/{LAB}.ipynb"
    assert reasons(class_of(ON_MOODLE, {path: None})) == {
        path: "it looks like the file of two students: ask for the file under a plain name"
    }


def test_what_she_hands_in_beside_it_still_counts_as_hers() -> None:
    own = f"mallory/{LAB}.ipynb"
    choice = class_of(PLAIN, {own: None, f"mallory/alice/{LAB}.ipynb": None})
    assert chosen(choice) == {**PLAIN, "mallory": own}


@pytest.mark.parametrize(
    ("honest", "folder"),
    [(ON_MOODLE, f"Mallory_57{MOODLE}"), (PLAIN, "mallory"), (ON_MOODLE, f"Mallory_57{MOODLE}/sub")],
)
def test_a_time_of_her_own_is_no_time(honest, folder) -> None:
    """Only nbgrader's own layout has a timestamp.txt that somebody else wrote."""
    own = f"{folder}/{LAB}.ipynb"
    choice = class_of(honest, {own: None, f"{folder}/timestamp.txt": b"2020-01-01 00:00:00 UTC"})
    (hers,) = [candidate for candidate in choice.candidates if candidate.entry.path == own]
    assert hers.when in (None, LATER)
    assert [item.path for item in choice.passed_over] == [f"{folder}/timestamp.txt"]


def test_a_time_in_nbgraders_layout_is_believed() -> None:
    own = f"mallory/{LAB}/{LAB}.ipynb"
    choice = class_of(PLAIN, {own: None, f"mallory/{LAB}/timestamp.txt": b"2026-01-30 00:00:00 UTC"})
    (hers,) = [candidate for candidate in choice.candidates if candidate.entry.path == own]
    assert hers.when == datetime.datetime(2026, 1, 30, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("honest", "path"),
    [
        (PLAIN, "mallory/a_1_2_b.ipynb"),
        (PLAIN, f"mallory/Alice Doe_55{MOODLE}/x.ipynb"),
        (ON_MOODLE, f"Mallory_57{MOODLE}/a_1_2_b.ipynb"),
        (ON_MOODLE, f"Mallory_57{MOODLE}a_1_2_b.ipynb"),
        (ON_CANVAS, f"mal_34_56_x_57{MOODLE}y.ipynb"),
    ],
)
def test_no_name_of_hers_changes_how_the_class_is_read(honest, path) -> None:
    assert honest.items() <= chosen(class_of(honest, {path: None})).items()


def test_a_pattern_that_finds_two_students_in_a_path_is_not_believed() -> None:
    import re

    pattern = re.compile(r"(?P<student>[a-z]+)/")
    path = f"mallory/alice/{LAB}.ipynb"
    choice = class_of({"alice": f"alice/{LAB}.ipynb"}, {path: None}, pattern=pattern)
    assert chosen(choice) == {"alice": f"alice/{LAB}.ipynb"}
    assert reasons(choice)[path] == (
        "the pattern finds two students in it, mallory and alice: let the pattern begin with ^"
    )
    anchored = class_of({"alice": f"alice/{LAB}.ipynb"}, {path: None}, pattern=re.compile(f"^{pattern.pattern}"))
    assert chosen(anchored) == {"alice": f"alice/{LAB}.ipynb", "mallory": path}


def test_with_a_roster_a_display_name_like_hers_is_told_by_the_number() -> None:
    roster = Roster(("al", "mal"), {key: frozenset([who]) for key, who in (("55", "al"), ("57", "mal"))})
    choice = class_of(
        {"al": f"Alice Doe_55{MOODLE}/{LAB}.ipynb"}, {f"Alice Doe_57{MOODLE}/{LAB}.ipynb": None}, roster=roster
    )
    assert set(chosen(choice)) == {"al", "mal"} and not choice.refused
