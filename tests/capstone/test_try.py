"""`my_try`, as the notebook calls it: in the check's settings, and no traceback where a script does not fit."""

from __future__ import annotations

import pytest
import torch

from labkit.capstone import ghosts
from labkit.material import lab20_try
from labkit.spec import STUB_MESSAGE
from tests.capstone.ghost_scripts import ghost_scripts

pytestmark = pytest.mark.lab("20")


@pytest.fixture
def written(monkeypatch):
    """Have the notebook's cell hold this text."""
    return lambda text: monkeypatch.setattr(lab20_try, "cell_of", lambda program, name: text)


def test_a_script_that_does_not_fit_is_told_so_and_can_be_drawn_beside_the_ghosts(written, capsys) -> None:
    written(ghost_scripts()["basement", "naive"])
    entry = lab20_try.my_try()
    naive = ghosts()["basement"]["naive"]
    assert (entry.fits, entry.counts) == (False, False)
    assert (entry.virtual_hours, entry.peak_bytes) == (naive.virtual_hours, naive.peak_bytes)
    assert "The try ended early: the peak is " in capsys.readouterr().out


def test_a_text_that_is_no_script_is_told_so_and_comes_to_nothing(written, capsys) -> None:
    written("import os")
    assert lab20_try.my_try() is None
    assert "The try ended early: " in capsys.readouterr().out


def test_it_runs_on_one_thread_and_puts_their_number_back(written, monkeypatch) -> None:
    written("STEPS = 1")
    seen, before = [], torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        monkeypatch.setattr(
            lab20_try, "play", lambda *args: seen.append(torch.get_num_threads()) or {"problem": "", "bill": None}
        )
        lab20_try.my_try()
        assert (seen, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)


def test_a_blank_cell_is_not_tried(written) -> None:
    written(f'raise NotImplementedError("{STUB_MESSAGE}")')
    with pytest.raises(NotImplementedError):
        lab20_try.my_try()
