"""The one way to a terminal: nothing that a student wrote steers it, and nothing of ours goes another way."""

from __future__ import annotations

import ast
import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading import nbgrader_api, terminal
from grading.__main__ import COMMANDS, main
from grading.errors import UserError
from grading.terminal import NO_READER, lines_in, one_line, say, table

ODD = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F)]))
ODD += "".join(map(chr, [*range(0x2060, 0x2070), 0xFEFF, 0xFFF9, 0xD800, 0xDFFF, 0xE0001, 0xE007F]))
GRADING = Path(terminal.__file__).parent
ELSEWHERE = ("worker/", "verify/inside_stock.py")
"""The student's side of the wire, and what runs in a sandbox of its own."""


def test_no_line_holds_what_is_not_shown_as_itself() -> None:
    assert one_line(f"a{ODD.replace(chr(9), '')}b") == f"a{'?' * (len(ODD) - 1)}b"
    assert one_line("a\tb\nc\u00a0d\u3000e") == "a    b?c d e"
    assert one_line("zo\u00eb \u4e2d \U0001f600") == "zo\u00eb \u4e2d \U0001f600"
    assert lines_in("a\x1b[0mb\r\nc\td\u202e\ne") == ["a?[0mb", "c    d?", "e"]


@settings(max_examples=40)
@given(st.lists(st.text(max_size=8), max_size=4))
def test_as_many_lines_are_printed_as_are_said_whatever_is_in_them(texts) -> None:
    before, sys.stdout = sys.stdout, io.StringIO()
    try:
        say(*texts)
        printed = sys.stdout.getvalue()
    finally:
        sys.stdout = before
    assert printed.count("\n") == len(texts)
    assert all(char == "\n" or char.isprintable() for char in printed)


def test_a_table_has_one_line_for_a_row() -> None:
    lines = table(("student", "n"), [("a\x9bb\n", 1), ("evil\u202egnp", 22)])
    assert lines == ["student    n", "--------  --", "a?b?       1", "evil?gnp  22"]


def test_a_terminal_that_knows_few_characters_gets_question_marks(monkeypatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    say("zo\u00eb \u4e2d")
    assert raw.getvalue() == b"zo? ?\n"


def test_an_error_is_said_on_one_line_too(monkeypatch, capsys) -> None:
    def fail(_args) -> int:
        raise UserError("the student \x1b]0;x\x07\nada", "look \u202eat it")

    monkeypatch.setattr("grading.commands.doctor.run", fail)
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err == "grading: the student ?]0;x??ada: look ?at it\n"
    assert "doctor" in {command.name for command in COMMANDS}


@pytest.mark.parametrize(
    ("words", "closed"),
    [
        (["--help"], "stdout"),
        (["no-such-command"], "stderr"),
        pytest.param(["table"], "stdout", marks=pytest.mark.slow),
        pytest.param(["try", "00-warm-up", "--draws", "1"], "stdout", marks=pytest.mark.slow),
        pytest.param(["grade", "no-such-course", "00"], "stderr", marks=pytest.mark.slow),
    ],
    ids=["help", "usage", "table", "try", "refused"],
)
def test_a_command_ends_quietly_when_nobody_reads_what_it_prints(words: list[str], closed: str) -> None:
    """As in `python -m grading try ... | head`: no traceback, and the exit code of a program that SIGPIPE ended."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, closed: writer}
    # Without a buffer argparse meets the closed pipe itself, says nothing, and ends with a code of its own.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-m", "grading", *words], cwd=GRADING.parent, env=environment, **streams)
    os.close(writer)
    assert (done.returncode, done.stdout or b"", done.stderr or b"") == (NO_READER, b"", b"")


def test_what_nbgrader_logs_is_harmless_to_read(tmp_path) -> None:
    path = tmp_path / "nbgrader.log"
    log = nbgrader_api._log_to(path)
    try:
        log.error("no student %s", "\x1b[2J\x9b\u202e")
    finally:
        for handler in list(log.handlers):
            handler.close()
            log.removeHandler(handler)
    assert path.read_text() == "no student ?[2J??\n"
    assert logging.getLogger(log.name).handlers == []


def ways_out(tree: ast.AST) -> list[int]:
    """The lines where something is written to a standard stream."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            found.append(node.lineno)
        if isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr") and isinstance(node.value, ast.Name):
            found += [node.lineno] * (node.value.id == "sys")
    return found


def test_nothing_else_prints() -> None:
    assert ways_out(ast.parse("print(1)\nsys.stderr.write(x)")) == [1, 2]
    paths = [path for path in GRADING.rglob("*.py") if not path.relative_to(GRADING).as_posix().startswith(ELSEWHERE)]
    found = {path.name: ways_out(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    assert [name for name, lines in found.items() if lines] == ["terminal.py"]
