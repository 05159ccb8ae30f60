"""Names of students: which can be taken, and which are nearly the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.intake.names import folded, wrong_with_student

ODD_NAMES = ["", "a*", "a[1]", "a?", "a\n1", "a/b", "..", ".a", " a", "a ", "x" * 129, "名" * 67, "a\ud800"]
UNSEEN = [
    "a\x85",
    "a\x9b2J",
    "a\u061c",
    "a\u200e",
    "a\u202e",
    "a\u2066",
    "a\u200b",
    "a\ufeff",
    "a\u2028",
    "a\U000e0061",
    "a\u3164",
    "a\u034f",
    "a\u2800",
    "a\u17b5",
    "a\u180e",
]


@pytest.mark.parametrize("name", ODD_NAMES + UNSEEN)
def test_names_that_nbgrader_or_a_disk_cannot_take_are_refused(name) -> None:
    assert wrong_with_student(name)


@pytest.mark.parametrize(
    "name",
    [
        "O'Brien, Pat",
        "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",
        "\u674e\u3000\u96f7",
        "=1+1",
        "a_b",
        "Zo\u00eb J.",
        "\u845b\U000e0100",
    ],
)
def test_names_that_people_have_are_taken(name) -> None:
    assert wrong_with_student(name) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ADA", "ada"),
        ("Zo\u00eb", "Zoe\u0308"),
        ("\uff21da", "Ada"),
        ("\ufb01n", "fin"),
        ("al\u200dice", "alice"),
        ("Stra\u00dfe", "STRASSE"),
        ("Ada  Lovelace", "Ada\u2003Lovelace"),
        ("\u845b\U000e0100", "\u845b"),
        ("alice\ufe0f", "alice"),
        ("alice\u3164", "alice"),
    ],
)
def test_names_that_look_alike_are_folded_to_one(one, other) -> None:
    assert folded(one) == folded(other)


@given(st.text(max_size=6))
def test_folding_a_name_again_changes_nothing(name) -> None:
    assert folded(folded(name)) == folded(name)
