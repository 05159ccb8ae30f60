"""What students get holds no solution, no hidden case and nothing of the grader, and works by itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import grading.build.bundle as bundle_module
from grading.__main__ import main
from grading.build.bundle import NAME, make_bundle
from grading.build.compile import build_all, student_files
from grading.build.files import write

REPOSITORY = Path(__file__).resolve().parents[2]
GIVEN = re.compile(
    r"(\w+ = )?tl\.(load|store)\((param|grad|exp_avg|exp_avg_sq)_ptr \+ offs,.*"
    r"|offs = tl\.program_id\(0\) \* BLOCK_SIZE \+ tl\.arange\(0, BLOCK_SIZE\)|mask = offs < n"
)
"""Lines of the kernel that lab 12 gives to be repaired: what it loads and stores is right."""
SHORTEST = 60
"""Characters of a passage that is a solution's own."""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    make_bundle(folder / "labs.zip")
    with zipfile.ZipFile(folder / "labs.zip") as archive:
        archive.extractall(folder)
    return folder / NAME


def solution_passages() -> set[str]:
    """Every three consecutive lines of a solution, unless they are short together.

    A hint may quote one line, an oracle may need the same two, and three short ones are everybody's (`try:`, `yield`,
    `finally:`). What is given is left out.
    """
    passages: set[str] = set()
    for source in (REPOSITORY / "solutions").glob("[0-9]*.py"):
        for region in re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", source.read_text(), re.DOTALL):
            lines = [line.strip() for line in region.splitlines() if line.strip()]
            threes = [lines[at : at + 3] for at in range(len(lines) - 2)]
            passages |= {" ".join(three) for three in threes if not all(map(GIVEN.fullmatch, three))}
    return {passage for passage in passages if len(passage) >= SHORTEST}


def text_in(*folders: Path) -> str:
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return "\n".join(path.read_text(errors="ignore") for path in files)


def given_away(text: str) -> list[str]:
    """The passages of solutions, and the lines that draw a hidden case, that are in a text."""
    flat = " ".join(re.sub(r'\\n",?\s*\n\s*"', " ", text).split())
    passages = solution_passages()
    hidden = text_in(REPOSITORY / "grading" / "hidden")
    drawn = {line.strip() for line in hidden.splitlines() if "rng." in line}
    assert len(passages) > 20 and drawn
    starts = {passage[:SHORTEST] for passage in passages}
    begun = {start for at in range(len(flat)) if (start := flat[at : at + SHORTEST]) in starts}
    found = [passage for passage in passages if passage[:SHORTEST] in begun and passage in flat]
    return found + [line for line in drawn if line in text]


def test_no_solution_is_given_away_by_labkit_or_a_notebook() -> None:
    assert given_away(text_in(REPOSITORY / "labkit", REPOSITORY / "notebooks")) == []


def test_a_solution_in_other_clothes_is_seen() -> None:
    passage = min(solution_passages())
    assert given_away("x = 1\n" + passage.replace(" ", "\n    ")) == [passage]


@pytest.mark.slow
def test_no_solution_and_nothing_of_the_grader_is_in_it(bundle) -> None:
    names = {path.relative_to(bundle).parts[0] for path in bundle.rglob("*")}
    assert names.isdisjoint({"grading", "solutions", "tests", "benchmarks", ".git"})
    text = text_in(bundle)
    assert "BEGIN SOLUTION" not in text and "BEGIN HIDDEN TESTS" not in text and "BEGIN MARK SCHEME" not in text
    assert given_away(text) == []


@pytest.mark.slow
def test_labkit_checks_answers_from_the_bundle_alone(bundle, tmp_path) -> None:
    answer = "lambda x, dim: x.double().square().mean(dim).sqrt().to(x.dtype)"
    code = f"from labkit import check\ncheck('00-warm-up', {answer})"
    environment = {**os.environ, "PYTHONPATH": str(bundle), "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "cases pass" in done.stdout, done.stderr


@pytest.mark.slow
def test_its_readme_is_for_students_and_names_what_is_there(bundle) -> None:
    readme = (bundle / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# For students")
    listed = subprocess.run(["make", "help"], cwd=bundle, capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"^  make (\S+)", listed, re.MULTILINE))
    assert targets == {"help", "setup", "lab"}, "the others need what students do not have"
    assert set(re.findall(r"\bmake ([a-z-]+)", readme)) <= targets
    linked = [to for to in re.findall(r"\]\(([^)#]+)", readme) if "://" not in to]
    named = [*linked, *re.findall(r"`([\w.]+(?:/|\.md|\.yml)(?:[\w.]+\.py)?)`", readme)]
    assert {"AGENTS.md", "notebooks/"} <= set(named)
    assert [name for name in named if not (bundle / name).exists() and name not in ("work/", ".venv/")] == []


@pytest.mark.slow
def test_the_same_tree_gives_the_same_bytes(bundle, tmp_path) -> None:
    make_bundle(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (bundle.parent / "labs.zip").read_bytes()


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """A small one, with the first lab alone."""
    for folder in ("solutions", "notebooks", *bundle_module.FOLDERS):
        (tmp_path / folder).mkdir()
    (tmp_path / "docs").mkdir()
    for name in bundle_module.FILES.values():
        (tmp_path / name).write_text("")
    source = next((REPOSITORY / "solutions").glob("00_*.py"))
    shutil.copy(source, tmp_path / "solutions")
    write(student_files(tmp_path, build_all([source])))
    monkeypatch.setattr(bundle_module, "ROOT", tmp_path)
    return tmp_path


def test_what_else_lies_beside_the_notebooks_stays_here(checkout) -> None:
    (checkout / "notebooks" / "solved.py").write_text("def rms(x, dim): return 'what a cell wrote'")
    assert make_bundle(checkout / "a.zip") == 1 + len(bundle_module.FILES)
    with zipfile.ZipFile(checkout / "a.zip") as archive:
        (notebook,) = (name for name in archive.namelist() if "notebooks" in name)
    assert re.fullmatch(rf"{NAME}/notebooks/00_\w+\.ipynb", notebook)


def test_notebooks_that_are_not_as_the_build_makes_them_are_not_handed_out(checkout, capsys) -> None:
    (path,) = (checkout / "notebooks").glob("*.ipynb")
    text = path.read_text()
    name = f"notebooks/{path.name}"

    def refusal() -> str:
        assert main(["bundle", "--out", str(checkout / "a.zip")]) == 2
        assert not (checkout / "a.zip").exists()
        return capsys.readouterr().err

    path.write_text(text.replace('"outputs": []', '"outputs": [{"name": "stdout", "output_type": "stream"}]', 1))
    assert f"{name} is stale: python -m grading build makes" in refusal()
    path.unlink()
    assert f"{name} is missing: " in refusal()
    path.write_text(text)
    (checkout / "notebooks" / "solved copy.ipynb").write_text(text)
    assert "notebooks/solved copy.ipynb is extra: " in refusal()
    (checkout / "notebooks" / "solved copy.ipynb").unlink()
    (checkout / "solutions" / "01_bad.py").write_text("no lab")
    assert "the sources are refused" in refusal()


def test_a_place_that_cannot_be_written_is_one_line(checkout, capsys) -> None:
    assert main(["bundle", "--out", str(checkout / "no" / "such" / "labs.zip")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err
