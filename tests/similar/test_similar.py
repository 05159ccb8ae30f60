"""Answers that are alike: a disguised copy is found among honest answers, and honest answers are not."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from grading.__main__ import main
from grading.course import Course
from grading.demo.examples import examples, solution_of
from grading.gradebook.setup import set_up
from grading.similar.detector import LEAST_COVERED, compare, fingerprint, given_in
from grading.similar.honest import LEAST, honest_likeness, honest_programs
from grading.similar.page import as_page, marked
from grading.similar.pairs import compare_answers
from grading.similar.programs import CUDA, Answers, ClassAnswers, Program, program_of
from tests.lanes import require_package
from tests.similar.disguise import disguised

ROOT = Path(__file__).resolve().parents[2]
LAB = "02_float_formats"
GIVEN = Program("def decode(bits, fmt):\n    raise NotImplementedError\n")


@pytest.fixture(autouse=True)
def _needs_copydetect() -> None:
    require_package("copydetect")


def right(exercise: str) -> list[str]:
    return [solution_of(exercise), *(item.source for item in examples("right", exercise))]


def share(one: str, other: str, given: set[int] = frozenset()) -> float:
    return compare(fingerprint(Program(one), given), fingerprint(Program(other), given)).share


@pytest.mark.slow
def test_other_names_comments_and_an_other_order_change_little() -> None:
    for exercise in ("02-decode", "05-checkpoint", "06-adamw", "08-nf4"):
        solution = solution_of(exercise)
        assert share(solution, solution) == 1.0
        assert share(solution, disguised(solution)) > LEAST
        assert share(solution, disguised(solution) + solution_of("02-sums")) > LEAST, "made longer"
        assert share(solution, right(exercise)[1]) < LEAST


def test_what_was_given_and_what_is_short_tells_nothing() -> None:
    text = "def decode(bits, fmt):\n    raise NotImplementedError\n"
    assert fingerprint(Program(text), given_in(GIVEN)).covered == 0
    assert share(text, text, given_in(GIVEN)) == 0.0
    assert fingerprint(Program("x = 1\n")).covered < LEAST_COVERED
    assert share("", "") == 0.0


def test_an_exercise_whose_right_answers_are_alike_is_left_out_with_the_measure() -> None:
    found = honest_likeness("13-matmul", Program(""))
    assert found.highest >= 0.7
    assert found.left_out == f"right answers are necessarily alike: two that nobody copied share {found.highest:.0%}"
    found = honest_likeness("02-decode", Program(""))
    assert found.left_out is None and found.n_pairs >= 10 and found.limit == max(LEAST, found.highest + 0.1)
    assert honest_likeness("99-nowhere", GIVEN).left_out == "there are no honest answers to measure it by"


def test_a_copy_is_the_only_pair_among_honest_answers() -> None:
    programs = honest_programs("02-decode")
    copy = Program(disguised(programs[1].text))
    by_student = {f"honest{n}": program for n, program in enumerate(programs)}
    answers = Answers("02-decode", GIVEN, {**by_student, "copier": copy, "blank": GIVEN, "tiny": Program("x = 1")})
    found = compare_answers(answers)
    assert [pair.students for pair in found.pairs] == [("copier", "honest1")]
    n = len(programs) + 1
    assert found.n_pairs == n * (n - 1) // 2 and found.too_short == ("blank", "tiny")
    (pair,) = found.pairs
    spans = [
        program.text[start:end]
        for program, parts in zip(pair.programs, pair.likeness.parts, strict=True)
        for start, end in parts
    ]
    assert spans and all(spans)


def test_an_answer_that_went_round_is_one_group_and_not_a_pair_for_each_two() -> None:
    """A member of a group stands for it where another answer is like it, too."""
    programs = honest_programs("02-decode")
    renamed = Program(programs[0].text.replace("mantissa", "fraction_bits") + "# my own work\n")
    longer = Program(disguised(programs[0].text) + solution_of("02-sums"))
    same = {f"friend{n:02}": programs[0] if n % 2 else renamed for n in range(40)}
    found = compare_answers(Answers("02-decode", GIVEN, {**same, "other": programs[1], "padded": longer}))
    (group,) = found.groups
    assert group.students == tuple(same) and group.programs == (renamed, programs[0])
    assert [(pair.students, pair.others) for pair in found.pairs] == [(("friend00", "padded"), (39, 0))]
    assert found.n_pairs == 42 * 41 // 2
    page = as_page(ClassAnswers(LAB, (), {}), [found])
    assert "<b>40 students</b> have the same answer" in page and "friend00 with 39 others and padded" in page
    assert page.count("<pre") == 4 and page.count("<details open>") == 1
    two = compare_answers(Answers("02-decode", GIVEN, {"ada": programs[0], "bob": renamed}))
    assert two.groups == () and [pair.likeness.share for pair in two.pairs] == [1.0]


@pytest.mark.full("determinism")
def test_the_shares_do_not_depend_on_the_seed_of_hashes() -> None:
    code = (
        "from grading.demo.examples import solution_of, examples\n"
        "from grading.similar.detector import compare, fingerprint\n"
        "from grading.similar.programs import Program\n"
        "a, b = (fingerprint(Program(t)) for t in (solution_of('08-nf4'), examples('right', '08-nf4')[0].source))\n"
        "print(compare(a, b))\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1 and "share=0." in told.pop()


def test_the_page_for_instructors_quotes_what_was_measured() -> None:
    measured = json.loads((ROOT / "benchmarks" / "results" / "similarity.json").read_text())["result"]
    said = " ".join((ROOT / "docs" / "audit_and_export.md").read_text(encoding="utf-8").split())
    copies, padded, honest = (measured[name] for name in ("disguised_copies", "padded_copies", "honest_pairs"))
    assert f"of {copies['n']} copies" in said
    for each in (copies, padded):
        assert f"{each['found']} ({each['found'] / each['n']:.0%})".replace("%", " %") in said
    assert f"share {honest['median']:.0%}".replace("%", " %") in said
    assert f"and {honest['highest_tenth']:.0%} or less".replace("%", " %") in said
    n_alike = measured["left_out"]["right answers are necessarily alike"]
    assert f"of the {measured['exercises']} exercises these are {n_alike}" in said
    assert f"{sum(measured['left_out'].values()) - n_alike} more are left out" in said


def test_a_kernel_is_taken_out_of_its_text() -> None:
    assert program_of('axpy = r"""\n__global__ void axpy() {}\n"""\n') == Program("\n__global__ void axpy() {}\n", CUDA)
    assert program_of("x = 1\n") == Program("x = 1\n")
    assert program_of("def broken(:") == Program("def broken(:")


def test_what_is_marked_is_escaped() -> None:
    assert marked("<a>\nb\u202ec", ((1, 2), (3, 6))) == "&lt;<mark>a</mark>&gt;<mark>\nb?</mark>c"
    assert marked("abc", ()) == "abc"
    assert marked("abcdef", ((0, 3), (2, 5))) == "<mark>abc</mark><mark>de</mark>f"


def hand_in(course: Course, student: str, answers: dict[str, str]) -> None:
    """The course's released notebook with these answers."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{LAB}.ipynb", as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    path = course.submitted(LAB, student)
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Course:
    """Honest answers, a copy, a blank notebook, and one whose file broke off."""
    course = set_up(tmp_path_factory.mktemp("similar") / "course", "c", labs={"02"})
    decode, sums = right("02-decode"), right("02-sums")
    hand_in(course, "ada", {"02-decode": decode[0], "02-sums": sums[0]})
    hand_in(course, "bob", {"02-decode": decode[2], "02-sums": sums[1]})
    copy = disguised(decode[0]) + "# </pre><script>alert(1)</script>\n"
    hand_in(course, "<script>x", {"02-decode": copy, "02-sums": sums[3]})
    hand_in(course, "blank", {})
    hand_in(course, "torn", {})
    course.submitted(LAB, "torn").write_text("{")
    return course


@pytest.mark.slow
def test_the_page_shows_the_pair_and_what_was_left_out(course, capsys) -> None:
    assert main(["similar", str(course.root), "02"]) == 0
    told = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in told.split("\n") if line.startswith("02-")}
    assert rows["02-decode"] == ["3", "75%", "0", "1"]
    assert rows["02-sums"][0] == "3" and rows["02-sums"][-1] == "0"
    assert "torn: 02_float_formats.ipynb " in told
    assert "a pair is no proof of copying: a person decides" in told
    page = (course.root / f"similar-{LAB}.html").read_text()
    assert "A person decides." in page and "<script" not in page and "&lt;script&gt;x and ada" in page
    assert "http" not in page.replace("http-equiv", ""), "it needs nothing else"
    assert page.count("<pre") == 2 and "<mark>" in page
    assert "torn: 02_float_formats.ipynb " in page


@pytest.mark.slow
def test_the_answers_are_laid_out_as_jplag_and_dolos_read_them(course, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    words = ["export", str(course.root), "--format", "similarity", "--lab", "02", "--out", str(out)]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "left out: torn (02_float_formats): 02_float_formats.ipynb " in told
    top = out / LAB / "02-decode"
    assert sorted(path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()) == [
        "base/02-decode.py",
        "info.csv",
        "submissions/<script>x/02-decode.py",
        "submissions/ada/02-decode.py",
        "submissions/bob/02-decode.py",
    ]
    assert (top / "submissions" / "ada" / "02-decode.py").read_text() == solution_of("02-decode")
    assert "def decode(" in (top / "base" / "02-decode.py").read_text()
    with (top / "info.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["full_name"] for row in rows] == ["<script>x", "ada", "bob"]
    assert all((top / row["filename"]).is_file() for row in rows)
    assert main(words) == 2
    assert f"{out / LAB} is there already: remove it, or choose another place" in capsys.readouterr().err
    assert main([*words, "--section", "A"]) == 2
    assert "--section is for grades: leave it out with --format similarity" in capsys.readouterr().err


@pytest.mark.slow
def test_what_is_missing_is_said(tmp_path, capsys, monkeypatch) -> None:
    course = set_up(tmp_path / "course", "c", labs={"02"})
    assert main(["similar", str(course.root), "02"]) == 2
    assert f"nobody has handed in {LAB}: collect submissions first" in capsys.readouterr().err
    assert main(["export", str(course.root), "--format", "similarity"]) == 2
    assert "nobody has handed in anything yet: export when there are submissions" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "copydetect", None)
    assert main(["similar", str(course.root), "02"]) == 2
    assert (
        "copydetect is not installed: pip install -e '.[similarity]' in the checkout, or export --format similarity "
        "for another detector" in capsys.readouterr().err
    )
