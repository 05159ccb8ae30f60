"""Places, pages and tables from entries that nobody handed in: ranks, ghosts, hostile texts, lock files."""

from __future__ import annotations

import csv
import datetime
import io
import json
import re
from pathlib import Path

import pytest

import grading.board.places as places
from grading.board.entries import EXERCISE, JUDGED_ON, Candidate, entry_in
from grading.board.gpu_times import GpuTime
from grading.board.lock import LOCKS, lock_in_words
from grading.board.page import as_page, bar_of, hours_in_words
from grading.board.places import MOST_CHANGED, Board, Place, board_named, boards_of
from grading.board.table import COLUMNS, as_csv
from grading.board.verify import EXACT, Verified, differences, summary
from grading.errors import UserError
from grading.report.csv_table import FORMULA_STARTS
from labkit.capstone import MACHINES, Entry
from labkit.capstone.processor import processor
from labkit.exercises.lab20.budget import Try
from labkit.oracles import oracle_of
from labkit.spec import CaseRun
from tests.report.test_report_page import Page

NASTY = (
    "=1+1",
    "+49 170",
    "-rf",
    "@me",
    "a;=1+1",
    "\t=1",
    "＝1",
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\u202eeslaf",
    "two\nlines\r\nthree",
    "李雷",
    "x" * 10_000,
)


def entry(hours: float = 0.5, machine: str = "basement", **more) -> Entry:
    found = {
        "peak_bytes": {"parameters": 2**31, "activations": 2**30},
        "losses": {"7": 1.5},
        "digest": "a5105af9a7e0f1d2",
        **more,
    }
    return Entry(machine, hours, 200, 9000.0, 0.0, **found)


def candidate(student: str, hours: float, **more) -> Candidate:
    when = more.pop("when", datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC))
    return Candidate(student, f"{student}{hours}", entry(hours, **more), when, isolation="kernel")


def names_of(students: str) -> dict[str, str]:
    return {student: f"name-of-{student}" for student in students}


def ranks(*hours: float) -> list[tuple[str, int, int]]:
    students = "abcdefgh"[: len(hours)]
    found = [candidate(student, each) for student, each in zip(students, hours, strict=True)]
    board = board_named(boards_of(found, names_of(students)), "basement")
    return [(place.name[-1], place.rank, place.shared_by) for place in board.places]


def test_equal_hours_share_a_place_and_the_next_stays_free() -> None:
    assert ranks(0.3, 0.2, 0.3, 0.1, 0.4, 0.3) == [
        ("d", 1, 1),
        ("b", 2, 1),
        ("a", 3, 3),
        ("c", 3, 3),
        ("f", 3, 3),
        ("e", 6, 1),
    ]
    assert ranks(0.3, 0.3) == [("a", 1, 2), ("b", 1, 2)]
    assert ranks() == []


def test_the_best_of_each_student_counts_on_each_machine() -> None:
    found = [candidate("a", 0.4), candidate("a", 0.2), candidate("a", 0.9, machine="v100"), candidate("b", 0.3)]
    boards = boards_of(found, names_of("ab"))
    assert [board.machine for board in boards] == list(MACHINES)
    hours = {board.machine: [place.entry.virtual_hours for place in board.places] for board in boards}
    assert hours == {"basement": [0.2, 0.3], "v100": [0.9], "quad": [], "slice": []}


def test_a_machine_that_only_an_entry_knows_has_a_board() -> None:
    (*_, board) = boards_of([candidate("a", 0.4, machine="hidden-one")], names_of("a"))
    assert (board.machine, board.title, board.memory_bytes, len(board.rows)) == ("hidden-one", "hidden-one", None, 1)
    with pytest.raises(
        UserError, match='there is no machine "abacus": there are: basement, v100, quad, slice, hidden-one'
    ):
        board_named(boards_of([candidate("a", 0.4, machine="hidden-one")], names_of("a")), "abacus")


def test_ghosts_stand_in_between_and_take_no_place(monkeypatch) -> None:
    levels = {"naive": entry(0.1, fits=False), "silver": entry(0.3), "gold": entry(0.2)}
    monkeypatch.setattr(places, "ghosts", lambda: {"basement": levels})
    found = [candidate("a", 0.3), candidate("b", 0.1), candidate("c", 0.4)]
    board = board_named(boards_of(found, names_of("abc")), "basement")
    # Of a ghost's equals the student stands first; what does not fit is no ghost to beat.
    assert [(row.name, row.in_words) for row in board.rows] == [
        ("name-of-b", "1"),
        ("gold", "ghost"),
        ("name-of-a", "2"),
        ("silver", "ghost"),
        ("name-of-c", "3"),
    ]
    assert [place.rank for place in board.places] == [1, 2, 3]


def board_with(*texts: str) -> Board:
    rows = tuple(
        Place(f"name-{n}", entry(0.1 + n, changed=text), 1 + n, 1, candidate("a", 0.1 + n))
        for n, text in enumerate(texts)
    )
    return Board("basement", "one card", 2**33, rows)


@pytest.mark.parametrize("text", NASTY)
def test_a_hostile_line_is_text_of_bounded_length(text: str) -> None:
    board = board_with(text)
    (row,) = csv.DictReader(io.StringIO(as_csv(board, {"a5105af9a7e0f1d2": GpuTime(text, 1.0)}), newline=""))
    for value in (row["changed"], row["gpu"]):
        assert not value.startswith(FORMULA_STARTS) and all(char.isprintable() for char in value)
    assert len(row["changed"]) <= MOST_CHANGED + 3
    assert not any(cell.lstrip(" \"'")[:1] in FORMULA_STARTS for cell in row["changed"].split(";") if "'" not in cell)
    told = as_page(board, text[:50], None, {"a5105af9a7e0f1d2": GpuTime(text[:60], 1.0)})
    page = Page(told)
    assert page.open == [] and not {tag for tag, _ in page.tags} & {"script", "img", "a", "iframe"}
    assert "{{ 7 * 7 }}" in page.text or "{{" not in text
    assert "\x1b" not in told and "\u202e" not in told and len(told) < 30_000


def test_the_table_has_a_row_for_each_place_and_none_for_ghosts() -> None:
    found = [candidate("a", 0.25), candidate("b", 0.25)]
    text = as_csv(board_named(boards_of(found, names_of("ab")), "basement"), {})
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert tuple(rows[0]) == COLUMNS and len(rows) == 2
    assert [rows[0][name] for name in ("place", "shared_by", "peak_mib", "largest", "worst_loss")] == [
        *("1", "2", "3072", "parameters", "1.5"),
    ]


def test_the_page_says_ties_the_freeze_and_what_was_verified() -> None:
    found = [candidate("a", 0.25), candidate("b", 0.25)]
    board = board_named(boards_of(found, names_of("ab")), "basement")
    until = datetime.datetime(2026, 3, 9, 17, 0, tzinfo=datetime.UTC)
    page = Page(as_page(board, "records", until, {}, ("2 of 2 scores come out exactly.",)))
    for part in (
        "Frozen. It shows what was handed in up to 2026-03-09 17:00:00 UTC.",
        "1 shared by 2 entries",
        "3.00 GiB, most parameters",
        "2 of 2 scores come out exactly.",
        "Entries of equal hours share a place",
    ):
        assert part in page.text, part
    assert "GPU" not in page.text and "isolation" not in page.text
    assert "It is not frozen" in Page(as_page(board, "records", None, {})).text


def test_a_board_of_programs_that_nothing_confined_says_so() -> None:
    each = candidate("a", 0.25)
    place = Place("x", each.entry, 1, 1, Candidate("a", "9c1e", each.entry, each.handed_in, isolation="none"))
    page = Page(as_page(Board("basement", "one card", None, (place,)), "records", None, {}))
    assert "isolation: none, for 1 of the entries" in page.text


def test_the_parts_of_a_peak_fill_its_bar() -> None:
    one = entry(peak_bytes={"parameters": 2**31, "activations": 2**30, "unheard-of": 2**30})
    assert [(part.category, part.percent) for part in bar_of(one, 2**33)] == [
        ("parameters", 25.0),
        ("activations", 12.5),
        ("other", 12.5),
    ]


def test_hours_that_look_the_same_are_the_same() -> None:
    assert hours_in_words(0.123456) == "0.123456" and hours_in_words(0.123457) == "0.123457"


@pytest.mark.parametrize(
    "change",
    [
        {"machine": "../../../etc/cron.d/x"},
        {"machine": ""},
        {"machine": None},
        {"digest": "<b>"},
        {"changed": ["a list"]},
        {"declared_steps": "200"},
        {"virtual_hours": float("nan")},
        {"virtual_hours": "0.5"},
        {"virtual_hours": 0.0},
        {"virtual_hours": -1.0},
        {"step_ms": None},
        {"peak_bytes": {}},
        {"peak_bytes": {"<i>": 3}},
        {"peak_bytes": {"parameters": 0.5}},
        {"losses": {"7": float("inf")}},
        {"losses": None},
        {"surplus": 1},
    ],
)
def test_what_no_board_could_show_is_no_entry(change: dict) -> None:
    good = entry().to_json()
    assert entry_in({"entry": good}) == entry()
    assert entry_in({"entry": {**good, **change}}) is None


def test_what_is_no_record_holds_no_entry() -> None:
    for record in (None, {}, {"entry": None}, {"entry": []}, {"entry": {"machine": "basement"}}):
        assert entry_in(record) is None


def test_the_capstone_s_oracle_keeps_what_a_board_reads() -> None:
    billed = {"machine": "basement", "setup_s": 0.0, "step_s": 9.0, "peak_bytes": {"parameters": 2**31}, "flops": {}}
    billed |= {"n_bytes": 1, "host_bytes": 0, "link_bytes": 0, "sequences": 4, "unsupported": []}
    script = {"steps": 200, "changed": "fewer steps", "digest": "a5105af9a7e0f1d2"}
    got = {"kind": "", "problem": "", "bill": billed, "script": script, "weights": []}
    record = oracle_of(EXERCISE).record([CaseRun(Try(1), {"seeds": [7]}, got)])
    kept = entry_in(json.loads(json.dumps(record)))
    assert (kept.machine, kept.virtual_hours, kept.digest, kept.reached) == ("basement", 0.5, script["digest"], False)
    assert record[JUDGED_ON] == processor()


def test_every_figure_of_a_score_is_compared() -> None:
    changed = entry(0.6, "v100", peak_bytes={"parameters": 1}, digest="b", changed="x", fits=False, reached=False)
    changed = Entry(**{**changed.to_json(), "declared_steps": 1, "step_ms": 1.0, "setup_ms": 1.0})
    told = differences(entry(), changed)
    assert [line.split(" is ")[0] for line in told] == list(EXACT)
    assert "virtual_hours is 0.5 as stored, and 0.6 from the script" in told
    assert differences(entry(), entry()) == ()


def test_losses_of_another_processor_are_told_and_break_nothing() -> None:
    mine = Candidate("a", "9c1e", entry(), datetime.datetime.now(datetime.UTC), "GenuineIntel, family 6")
    rows = [Verified(mine, (), 3e-7, "AuthenticAMD, family 26"), Verified(mine, ("virtual_hours is 1",))]
    lines = summary(rows, {"torch": "2.13.0+cpu", "Python": "3.11.2"}, "as the lock file cpu.txt has them")
    assert lines == [
        "1 of 2 scores come out exactly when the scripts are played again.",
        "Played again with Python 3.11.2, torch 2.13.0+cpu; as the lock file cpu.txt has them.",
        "The losses were judged on GenuineIntel, family 6, and this time on AuthenticAMD, family 26.",
        "The losses differ by 3e-07 nats per token at most, and each is on the same side of the target.",
    ]


def test_versions_are_held_to_the_lock_file(tmp_path: Path) -> None:
    (tmp_path / "cpu.txt").write_text("torch==2.13.0\nnumpy==2.4.6 ; python_version > '3'\nipython==9.18.1\n")
    locked = {"Python": "3.11.2", "torch": "2.13.0+cpu", "numpy": "2.4.6", "ipython": "9.18.1", "peft": "absent"}
    assert re.fullmatch(r"as the lock file cpu\.txt has them \(SHA-256 [0-9a-f]{12}\)", lock_in_words(locked, tmp_path))
    other = {**locked, "numpy": "2.5.0"}
    assert lock_in_words(other, tmp_path) == "unlike the lock file cpu.txt: numpy 2.5.0 for 2.4.6"
    cuda = {**locked, "torch": "2.13.0"}
    assert lock_in_words(cuda, tmp_path) == "there is no lock file cuda.txt to compare these with"
    assert {path.name for path in LOCKS.iterdir()} == {"cpu.txt", "cuda.txt"}


def test_a_processor_is_named_by_its_family(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\n")
    assert processor(tmp_path / "cpuinfo").startswith("GenuineIntel, family 6, model 143, ")
    assert ", " in processor(tmp_path / "no such file")
