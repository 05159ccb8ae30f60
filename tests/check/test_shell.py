"""Where a program runs, and so how it shows something."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import IPython
import pytest

from labkit.shell import current_shell, show


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    found: list[object] = []
    monkeypatch.setattr("IPython.display.display", found.append)
    return found


def test_a_notebook_displays(monkeypatch: pytest.MonkeyPatch, displayed: list, capsys) -> None:
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel="a kernel"))
    show("a box")
    assert (displayed, capsys.readouterr().out) == (["a box"], "")


@pytest.mark.parametrize("shell", [None, SimpleNamespace(kernel=None), SimpleNamespace()])
def test_a_terminal_prints(shell: object, monkeypatch: pytest.MonkeyPatch, displayed: list, capsys) -> None:
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    show("some text")
    assert (displayed, capsys.readouterr().out) == ([], "some text\n")


def test_where_ipython_is_not_loaded_there_is_no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython")
    assert current_shell() is None and "IPython" not in sys.modules
