"""A course whose gradebook is a real PostgreSQL database: the grades of a SQLite one, and what is refused."""

from __future__ import annotations

import csv
import importlib.util
import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.course import Course
from grading.errors import UserError
from grading.gradebook.database import checked_url
from grading.gradebook.setup import release
from grading.nbgrader_api import load_config
from tests.grading.lessons import LAB, SOLUTION, cell_of, grade, solved, submit
from tests.grading.postgres import running_server

pytestmark = pytest.mark.full("postgresql")
WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"
ANSWERS = {"ada": SOLUTION, "blank": None, "Ñandú O'Brien %s {x}": WRONG}


@pytest.fixture(scope="module")
def server():
    with running_server() as server:
        yield server


@pytest.fixture(autouse=True)
def passfile(server, monkeypatch):
    """The password is where our text says that it belongs, and nowhere else."""
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(server.passfile))


def set_up_small(folder: Path, *options: str) -> Course:
    """A course made by our own command, with the small lab in the place of the real ones."""
    assert main(["course", str(folder), *options]) == 0
    course = Course.at(folder)
    shutil.rmtree(course.root / "source")
    (course.root / "source" / LAB).mkdir(parents=True)
    nbformat.write(solved(), course.root / "source" / LAB / f"{LAB}.ipynb")
    release(course, [LAB])
    for student, answer in ANSWERS.items():
        submit(course, student, answer, timestamp="2026-01-31 12:00:00 UTC")
    return course


def points(course: Course) -> dict[tuple[str, str], tuple[float | None, bool]]:
    with Gradebook(load_config(course).CourseDirectory.get("db_url", f"sqlite:///{course.root}/gradebook.db")) as book:
        return {
            (student, cell.name): (cell.auto_score, cell.needs_manual_grade)
            for student in ANSWERS
            for notebook in book.find_submission(LAB, student).notebooks
            for cell in notebook.grades
        }


def test_a_class_graded_into_postgresql_has_the_grades_of_sqlite(server, tmp_path) -> None:
    here = set_up_small(tmp_path / "sqlite" / "numerics")
    there = set_up_small(tmp_path / "pg" / "numerics", "--db", server.create("numerics"))
    for course in (here, there):
        assert grade(course, LAB, list(ANSWERS), workers=1, isolation="none") == []
    assert points(there) == points(here)
    assert points(there)["ada", "00-warm-up-check"] == (1, False)
    assert not (there.root / "gradebook.db").exists()
    rows = server.sql("SELECT id FROM student ORDER BY id", "numerics")
    assert [name for (name,) in rows] == sorted(ANSWERS)

    for course in (here, there):
        for command in (
            ["report", str(course.root)],
            ["export", str(course.root)],
            ["feedback", str(course.root), LAB],
        ):
            assert main(command) == 0
    table = (there.root / "grades.csv").read_text()
    assert table == (here.root / "grades.csv").read_text()
    assert {row["student"] for row in csv.DictReader(table.splitlines())} == set(ANSWERS)
    assert "Ñandú" in (there.root / "report.html").read_text()

    submit(there, "blank", SOLUTION)
    assert grade(there, LAB, list(ANSWERS), workers=1, isolation="none") == []
    assert points(there)["blank", "00-warm-up-check"] == (1, False)
    text = there.config.read_text()
    assert server.password not in text and "postgresql+psycopg" in text


SQL = "'); DROP TABLE grade; --"
HOSTILE = {
    "nul": "def rms(x, dim):\n    raise ValueError('a\\0b' * 1000)",
    "surrogate": "def rms(x, dim):\n    raise ValueError('\\ud800\\udfff')",
    "huge": "print('x' * 10**7)\ndef rms(x, dim):\n    raise ValueError('y' * 10**7)",
    "sql": f"print({SQL!r})\ndef rms(x, dim):\n    raise ValueError({SQL!r} + '%s %(a)s :name ?')",
    SQL: "def rms(x, dim):\n    return x",
    "%(a)s :name": "def rms(x, dim):\n    return x",
    "x" * 128: "def rms(x, dim):\n    return x",
    "\U0001f600\u0300": "def rms(x, dim):\n    return x",
}
TOO_LONG = "x" * 129
TIMES = {
    "nul-in-time": "2026-01-31 12:00:00\0 UTC",
    "the-end": "9999-12-31 23:59:59 -1200",
    "the-beginning": "0001-01-01 00:00:00 +1200",
}
OWN_WORDS = {
    "nul": "my answer\0is \\x00 long",
    "huge": "long " * 50_000,
    "sql": SQL,
}


def test_texts_and_names_that_a_database_could_stumble_over_reach_it_or_are_named(server, tmp_path) -> None:
    """The database is asked for as little as SQLite is; nobody's text costs another one's grade."""
    here = set_up_small(tmp_path / "sqlite" / "hostile")
    there = set_up_small(tmp_path / "pg" / "hostile", "--db", server.create("hostile"))
    for course in (here, there):
        for student, answer in HOSTILE.items():

            def write(notebook: nbformat.NotebookNode, student: str = student) -> None:
                cell_of(notebook, "00-open").source = OWN_WORDS.get(student, "mine")

            submit(course, student, answer, change=write, timestamp="2026-01-31 12:00:00 UTC")
        submit(course, TOO_LONG, SOLUTION)
        for student, timestamp in TIMES.items():
            submit(course, student, SOLUTION, timestamp=timestamp)
        # Names that are no text, as an unpacked archive leaves them.
        os.makedirs(os.path.join(os.fsencode(course.root), b"submitted", b"\xed\xa0\x80", os.fsencode(LAB)))
        ungraded = {item.student: item.outcome for item in grade(course, LAB, course.students(LAB), 1, "none")}
        assert ungraded == dict.fromkeys((TOO_LONG, "\udced\udca0\udc80", "the-end", "the-beginning"), "unreadable")
        for command in (["report", str(course.root)], ["export", str(course.root)]):
            assert main(command) == 0
    assert points(there) == points(here)
    assert (there.root / "grades.csv").read_text() == (here.root / "grades.csv").read_text()
    rows = server.sql("SELECT id FROM student", "hostile")
    assert {name for (name,) in rows} == {*ANSWERS, *HOSTILE, "nul-in-time"}


def test_a_server_that_is_gone_is_said_in_a_sentence_and_costs_nothing(tmp_path, monkeypatch, capsys) -> None:
    with running_server() as other:
        monkeypatch.setenv("PGPASSFILE", str(other.passfile))
        course = set_up_small(tmp_path / "course", "--db", other.create("gone"))
    capsys.readouterr()
    for command in (["grade", str(course.root), LAB, "--isolation", "none"], ["report", str(course.root)]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert told.startswith("grading: the gradebook cannot be used (") and "Traceback" not in told
    assert course.students(LAB) == sorted(ANSWERS)


def refused(url: str) -> str:
    with pytest.raises(UserError) as caught:
        checked_url(url)
    return str(caught.value)


def test_urls_as_people_write_them_get_the_driver_that_is_installed(server) -> None:
    url = server.create("plain")
    for given in (url, url.replace("postgresql:", "postgres:"), url.replace("postgresql:", "postgresql+psycopg:")):
        assert checked_url(given).startswith("postgresql+psycopg://teacher@/plain?host=")


def test_a_password_in_the_url_is_refused_and_not_repeated(server, tmp_path, capsys) -> None:
    for place in ("ada:pass-word@localhost/x", "ada@localhost/x?password=pass-word", "a@b/x?sslpassword=pass-word"):
        url = f"postgresql://{place}"
        assert main(["course", str(tmp_path / "course"), "--db", url]) == 2
        told = capsys.readouterr()
        assert "put it into ~/.pgpass (host:port:database:user:password, chmod 600) or PGPASSWORD" in told.err
        assert "pass-word" not in told.err + told.out
    for url in (
        "postgresql:ada:pass-word@localhost/x",
        "postgresql://ada:pass-word@[::1/x",
        "postgresql://a:pass-word@h:p/x",
    ):
        assert refused(url) == "--db has no database URL: write it like postgresql://user@host/database"
    assert list(tmp_path.iterdir()) == []


def test_databases_that_cannot_hold_a_gradebook_are_refused_before_anything_is_made(
    server, tmp_path, monkeypatch
) -> None:
    assert 'database "nowhere" does not exist' in refused(server.url("nowhere"))
    assert refused("postgresql://127.0.0.1:1/x").startswith("the database postgresql://127.0.0.1:1/x cannot be used (")
    assert refused("postgresql://localhost").startswith("the database URL names no database: ")
    assert refused("mysql://h/x").startswith("--db takes PostgreSQL, not mysql: ")
    server.create("ascii", ENCODING="SQL_ASCII")
    assert "has the encoding SQL_ASCII, which cannot hold every name: make one with: createdb" in refused(
        server.url("ascii")
    )
    server.create("taken")
    server.sql("CREATE TABLE assignment (id integer)", "taken")
    assert "holds a gradebook already: give every course a database of its own" in refused(server.url("taken"))
    server.sql("CREATE ROLE pupil LOGIN PASSWORD 'pupil'")
    server.create("others")
    monkeypatch.setenv("PGPASSWORD", "pupil")
    assert "permission denied for schema public" in refused(server.url("others", "pupil"))
    assert server.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", "others") == []
    monkeypatch.setenv("PGPASSWORD", "a wrong one")
    assert "password authentication failed" in refused(server.url("others", "pupil"))
    assert main(["course", str(tmp_path / "course"), "--db", server.url("nowhere")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_without_a_driver_the_way_to_get_it_is_said(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    told = refused("postgresql://localhost/x")
    assert told.startswith("the PostgreSQL driver psycopg is not installed")
    assert told.endswith("make setup, or pip install -e '.[postgresql]' in the checkout")
