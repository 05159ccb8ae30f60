"""oneDNN is off while anybody asks for it, and as it was before once nobody does."""

from __future__ import annotations

import threading

import pytest
import torch

from labkit.exercises.without_onednn import without_onednn


def test_the_last_one_who_ends_switches_it_on_again() -> None:
    before = torch._C._get_mkldnn_enabled()
    second_is_in, first_is_out, seen = threading.Event(), threading.Event(), []

    def second() -> None:
        with without_onednn():
            second_is_in.set()
            first_is_out.wait(10)
            seen.append(torch._C._get_mkldnn_enabled())

    thread = threading.Thread(target=second)
    with pytest.raises(KeyError), without_onednn():
        thread.start()
        second_is_in.wait(10)
        raise KeyError
    first_is_out.set()
    thread.join()
    assert (seen, torch._C._get_mkldnn_enabled()) == ([False], before)
