"""Whose a file is: the platforms' ways of naming, taken from their own sources, and what cannot be told."""

from __future__ import annotations

import datetime

import pytest

from grading.errors import UserError
from grading.intake.arrived import Arrivals, ArrivedFile, Refusal
from grading.intake.choose import Choice, ReadingOptions, choose
from grading.intake.platform import Sender, guess, sender_of, wrapper_of

LAB = "02_float_formats"
NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)


def choice_of(*paths: str, options: ReadingOptions | None = None, step: datetime.timedelta = MINUTE) -> Choice:
    """What is chosen among these paths, each a step newer than the one before."""
    entries = [ArrivedFile(path, 10, NOON + n * step, bytes) for n, path in enumerate(paths)]
    return choose(Arrivals(entries), LAB, options or ReadingOptions())


def chosen(choice: Choice) -> dict[str, str]:
    return {candidate.student: candidate.entry.path for candidate in choice.candidates}


@pytest.mark.parametrize(
    ("path", "name", "number", "file"),
    [
        ("Ada Lovelace_12_assignsubmission_file_/lab.ipynb", "Ada Lovelace", "12", "lab.ipynb"),
        ("Ada Lovelace_12_assignsubmission_file/lab.ipynb", "Ada Lovelace", "12", "lab.ipynb"),
        ("Ada Lovelace_12_assignsubmission_file_/sub/lab.ipynb", "Ada Lovelace", "12", "lab.ipynb"),
        ("Ada Lovelace_12_assignsubmission_file_my_lab.ipynb", "Ada Lovelace", "12", "my_lab.ipynb"),
        ("Group A-Ada_12_assignsubmission_file_/lab.ipynb", "Group A-Ada", "12", "lab.ipynb"),
        ("O'Brien, Pat_7_assignsubmission_file_/lab.ipynb", "O'Brien, Pat", "7", "lab.ipynb"),
        ("Mal_lory_7_assignsubmission_file_/lab.ipynb", "Mal_lory", "7", "lab.ipynb"),
        ("Mal_7_assignsubmission_file_lab_2_b.ipynb", "Mal", "7", "lab_2_b.ipynb"),
        ("Participant_7_assignsubmission_onlinetext_/onlinetext.html", "Participant", "7", "onlinetext.html"),
        ("Zoe\u0308_7_assignsubmission_file_/lab.ipynb", "Zo\u00eb", "7", "lab.ipynb"),
    ],
)
def test_moodle(path, name, number, file) -> None:
    assert sender_of(path, "moodle", LAB) == Sender(name, number, name, file)


@pytest.mark.parametrize(
    ("path", "sender"),
    [
        ("leeann_34_56_lab.ipynb", Sender("leeann", "34", "34", "lab.ipynb", 56)),
        ("leeann_LATE_34_56_lab-1.ipynb", Sender("leeann", "34", "34", "lab-1.ipynb", 56, True)),
        ("leeann_34_56_a_1_2_b.ipynb", Sender("leeann", "34", "34", "a_1_2_b.ipynb", 56)),
        ("anon_Xy12Z_56_lab.ipynb", Sender("", "anon_Xy12Z", "anon_Xy12Z", "lab.ipynb", 56)),
        ("LATE_anon_Xy12Z_56_lab.ipynb", Sender("", "anon_Xy12Z", "anon_Xy12Z", "lab.ipynb", 56, True)),
        ("leeann_late_34_56_lab.ipynb", Sender("leeann", "34", "34", "lab.ipynb", 56, True)),
        ("lee_34_56_12_lab.ipynb", None),
        ("lee_34_56_02_lab.ipynb", Sender("lee", "34", "34", "02_lab.ipynb", 56)),
        (f"lee_99_34_56_{LAB}.ipynb", Sender("lee_99", "34", "34", f"{LAB}.ipynb", 56)),
        (f"99_34_56_{LAB}-2.ipynb", Sender("99", "34", "34", f"{LAB}-2.ipynb", 56)),
        ("lee_34_56_x/lab.ipynb", None),
        ("ångström_34_56_lab.ipynb", Sender("ångström", "34", "34", "lab.ipynb", 56)),
        ("leeann_34_" + "9" * 5000 + "_lab.ipynb", Sender("leeann", "34", "34", "lab.ipynb", 10**18 - 1)),
    ],
)
def test_canvas(path, sender) -> None:
    if path == "lee_34_56_12_lab.ipynb":
        with pytest.raises(Refusal, match=f"can be read as from user 34 or 56: ask for the file as {LAB}.ipynb"):
            sender_of(path, "canvas", LAB)
    else:
        assert sender_of(path, "canvas", LAB) == sender


@pytest.mark.parametrize(
    ("path", "student"),
    [
        (f"ada/{LAB}.ipynb", "ada"),
        (f"ada/{LAB}/{LAB}.ipynb", "ada"),
        (f"ada/{LAB}/other.ipynb", "ada"),
        (f"ada_b_{LAB}.ipynb", "ada_b"),
        (f"ada_{LAB} (1).ipynb", "ada"),
        ("ada/homework.ipynb", "ada"),
        (f"{LAB}/{LAB}.ipynb", None),
        (f"{LAB}.ipynb", None),
    ],
)
def test_plain(path, student) -> None:
    sender = sender_of(path, "plain", LAB)
    assert (sender and sender.student) == student


@pytest.mark.parametrize(
    ("wrapper", "paths", "platform", "name"),
    [
        ("submitted/", [f"submitted/ada/{LAB}/{LAB}.ipynb"], "plain", ""),
        ("hw/submitted/", [f"hw/submitted/{n}/{LAB}/{LAB}.ipynb" for n in ("ada", "bob")], "plain", "hw"),
        ("hw/", [f"hw/ada/{LAB}.ipynb", f"hw/bob_{LAB}.ipynb"], "plain", "hw"),
        ("", [f"hw/ada/{LAB}.ipynb", f"hw/bob/{LAB}.ipynb"], "plain", ""),
        ("", [f"ada/{LAB}.ipynb"], "plain", "ada"),
        ("", [f"submitted/ada/{LAB}.ipynb", f"bob/{LAB}.ipynb"], "plain", ""),
        ("C1-Lab-55/", ["C1-Lab-55/Ada_7_assignsubmission_file_/lab.ipynb"], "moodle", ""),
        ("", ["Ada_7_assignsubmission_file_/sub/lab.ipynb"], "moodle", ""),
        ("a/b/", ["a/b/lee_1_2_x.ipynb"], "canvas", ""),
        ("", [], "plain", ""),
    ],
)
def test_a_wrapper_is_what_all_lie_in_and_no_students_own(wrapper, paths, platform, name) -> None:
    assert wrapper_of(paths, platform, LAB, name) == wrapper


def test_the_platform_is_guessed_only_where_one_alone_fits() -> None:
    moodle, canvas, plain = "A_1_assignsubmission_file_/x.ipynb", "lee_1_2_x.ipynb", f"ada/{LAB}.ipynb"
    assert [guess([path, "README.ipynb"], LAB) for path in (moodle, canvas, plain)] == ["moodle", "canvas", "plain"]
    for paths in ([moodle, canvas], [canvas, plain], [f"a/{LAB}.ipynb", moodle]):
        with pytest.raises(UserError, match=r"the files are named in several ways .*: say --platform"):
            guess(paths, LAB)


def test_canvas_counts_the_attachment_with_the_highest_number() -> None:
    choice = choice_of("lee_1_100_x-1.ipynb", "lee_1_99_x.ipynb", "lee_1_9_x.ipynb")
    assert chosen(choice) == {"1": "lee_1_100_x-1.ipynb"}
    assert [item.path for item in choice.passed_over] == ["lee_1_9_x.ipynb", "lee_1_99_x.ipynb"]
    assert choice.candidates[0].when is None and not choice.refused


def test_the_lab_itself_counts_before_a_later_scratch_notebook() -> None:
    assert chosen(choice_of(f"ada/{LAB}/{LAB}.ipynb", f"ada/{LAB}/scratch.ipynb")) == {"ada": f"ada/{LAB}/{LAB}.ipynb"}
    moodle = "Ada_1_assignsubmission_file_/"
    assert chosen(choice_of(f"{moodle}a.ipynb", f"{moodle}{LAB}.ipynb")) == {"Ada": f"{moodle}{LAB}.ipynb"}


def test_the_newest_counts_and_two_of_one_age_are_refused() -> None:
    paths = (f"ada_{LAB}.ipynb", f"ada/{LAB}.ipynb")
    assert chosen(choice_of(*paths)) == {"ada": f"ada/{LAB}.ipynb"}
    choice = choice_of(*paths, step=0 * MINUTE)
    assert not choice.candidates
    assert choice.refused[0].reason.startswith("2 notebooks of one student, and nothing tells which is the newest")


def test_two_people_of_one_name_are_both_refused() -> None:
    choice = choice_of(
        *(f"Ann Lee_{n}_assignsubmission_file_/{LAB}.ipynb" for n in (3, 4)), "Bob_5_assignsubmission_file_/x.ipynb"
    )
    assert list(chosen(choice)) == ["Bob"]
    reason = 'two people are "Ann Lee" here: Ann Lee 3 and Ann Lee 4. Tell them apart with --roster'
    assert [item.reason for item in choice.refused] == [reason, reason]


def test_students_whose_names_differ_only_in_case_are_refused() -> None:
    choice = choice_of(f"Ada/{LAB}.ipynb", f"ada_{LAB}.ipynb", f"bob/{LAB}.ipynb")
    assert list(chosen(choice)) == ["bob"]
    assert {item.reason for item in choice.refused} == {
        "these students' names differ only in case or in how letters are encoded: Ada, ada"
    }


def test_times_are_believed_where_the_platform_writes_them_or_one_says_so() -> None:
    moodle = "Ada_1_assignsubmission_file_/x.ipynb"
    assert choice_of(moodle).candidates[0].when is None
    assert choice_of(moodle, options=ReadingOptions(times="files")).candidates[0].when == NOON
    assert choice_of(f"ada/{LAB}.ipynb").candidates[0].when == NOON
    assert choice_of(f"ada/{LAB}.ipynb", options=ReadingOptions(times="none")).candidates[0].when is None
