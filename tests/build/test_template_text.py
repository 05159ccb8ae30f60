"""A lab is handed out when its author has replaced what `new` wrote for them to replace."""

from __future__ import annotations

from pathlib import Path

import pytest

from grading import own_labs
from grading.build import bundle
from grading.build.template_text import SENTENCES, left_in
from grading.errors import UserError
from grading.gradebook.setup import release
from grading.scaffold.names import exercise_names, lab_names
from grading.scaffold.write import new_lab
from tests.grading.deliveries import book, make_small_course
from tests.grading.lessons import LAB

LAST = "20"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The source of a lab as it is begun."""
    new_lab(tmp_path, lab_names("91_my_lab"), exercise_names("91-thing"))
    return tmp_path / "solutions" / "91_my_lab.py"


def test_each_sentence_stands_in_a_new_lab_and_is_found_with_its_line(source: Path) -> None:
    lines = source.read_text().splitlines()
    at = {sentence: number for sentence in SENTENCES for number, line in enumerate(lines, 1) if sentence in line}
    assert sorted(left_in(source)) == sorted(f'{source}:{number} says "{sentence}"' for sentence, number in at.items())
    assert at.keys() == set(SENTENCES)


def test_the_labs_of_the_course_have_none() -> None:
    """Those up to lab 20: one that an author has begun has them until it is written, and `make check` is green."""
    ours = [path for path in own_labs.sources() if path.name[:2] <= LAST]
    assert len(ours) == int(LAST) + 1
    assert [line for path in ours for line in left_in(path)] == []


def test_a_lab_with_one_is_not_released(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named is the line of its own source, or, where that is written by now, of the course's notebook."""
    course = make_small_course(tmp_path / "course")
    notebook = course.source(LAB)
    notebook.write_bytes(book(f"# {SENTENCES[1]}"))
    (line,) = left_in(notebook)
    with pytest.raises(UserError) as refused:
        release(course, [LAB])
    assert str(refused.value) == (
        f"lab {LAB} was not released: its text is the template's in 1 place: write your own: {line}"
    )
    theirs = source.rename(source.with_name(f"{LAB}.py"))
    monkeypatch.setattr(own_labs, "sources", lambda: [theirs])
    with pytest.raises(UserError, match=rf"in {len(SENTENCES)} places: write your own: .*{LAB}\.py:4 says "):
        release(course, [LAB])
    assert not (course.root / "release").exists()


def test_nor_does_it_get_into_the_archive(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = own_labs.sources()
    monkeypatch.setattr(own_labs, "sources", lambda: [*sources, source])
    with pytest.raises(UserError, match=r"a lab's text is the template's in places: .*91_my_lab\.py:4 says"):
        bundle.make_bundle(tmp_path / "labs.zip")
    assert not (tmp_path / "labs.zip").exists()
