"""Cells that need a blank answer are left out with one line; a check and every other error stay what they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from grading.build.stub import CODE_STUB
from labkit import left_out

BLANK = f"def area(x):\n    {CODE_STUB}\n"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.kernel = "a kernel"
    monkeypatch.setattr(left_out, "current_shell", lambda: shell)
    return shell


@pytest.fixture
def run(shell: InteractiveShell, capsys: pytest.CaptureFixture) -> Callable[[str], tuple[bool, str]]:
    """source -> whether the cell succeeded, and what it printed."""
    left_out.leave_out_blanks()

    def run(source: str) -> tuple[bool, str]:
        result = shell.run_cell(source)
        return result.success, capsys.readouterr().out

    run(BLANK)
    return run


def test_a_cell_that_meets_a_blank_answer_says_so_and_has_not_failed(run) -> None:
    assert run("print('before')\na = area(1)") == (True, "before\nLeft out here: area is still blank.\n")
    assert run("sum(map(area, [1]))") == (True, "Left out here: area is still blank.\n")


def test_a_cell_that_misses_what_such_a_cell_would_have_made_is_left_out_too(run) -> None:
    run("a = area(1)\ndef twice(): return 2 * a")
    text = "Left out here: the cell that makes {} needs area, which was still blank.\n"
    assert run("b = a + 1") == (True, text.format("a"))
    assert run("b") == (True, text.format("b"))
    assert run("def area(x):\n    return x\n")[0] and run("a = area(1)") == (True, "")
    assert run("b = a + 1") == (True, "")


def test_a_check_is_never_left_out(run) -> None:
    run("def check(answer): answer(1)")
    success, text = run("check(area)")
    assert not success and "NotImplementedError" in text and "Left out" not in text
    run("a = area(1)")
    assert not run("print(1)\ncheck(a)")[0]


@pytest.mark.parametrize("cell", ["1 / 0", "nowhere", "raise NotImplementedError('no eager attention')", "int('x')"])
def test_every_other_error_is_shown(cell: str, run) -> None:
    run("a = area(1)")
    success, text = run(cell)
    assert not success and "Traceback" in text and "Left out" not in text


def test_a_name_that_a_library_misses_is_an_error(run) -> None:
    run("total = area(1)")
    success, _ = run("exec('total', {'__builtins__': {}})")
    assert not success


def test_a_cell_after_one_that_was_left_out_may_fail(run) -> None:
    run("a = area(1)")
    assert not run("1 / 0")[0] and run("1 + 1")[0]


def test_outside_of_a_kernel_nothing_changes(shell: InteractiveShell) -> None:
    del shell.kernel
    left_out.leave_out_blanks()
    assert shell.custom_exceptions == ()
