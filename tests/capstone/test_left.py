"""What Python, a graph and a copy on the host hold between two steps, and memories that are told apart."""

from __future__ import annotations

import gc

import torch

from labkit.capstone.left import left_bytes, newly_made
from labkit.capstone.memories import Memories
from labkit.capstone.real import RealRun
from labkit.capstone.run import OnHost


def test_what_the_block_holds_is_counted_once_wherever_it_lies() -> None:
    n_frozen, before = gc.get_freeze_count(), torch.ones(1000)
    with newly_made():
        assert left_bytes() == 0
        held = [{"a": torch.ones(10)}, (torch.ones(6).bfloat16(),)]
        held.append(held[0]["a"][:4])
        assert left_bytes() == 40 + 12
        of_the_host = OnHost((5,), torch.float32, torch.ones(5))
        assert left_bytes() == 40 + 12
        held.clear()
        assert left_bytes() == 0
    assert of_the_host.shape == (5,) and before.shape == (1000,)
    assert (gc.get_freeze_count() > 0) == (n_frozen > 0)


def test_what_a_run_keeps_for_itself_is_not_counted() -> None:
    with newly_made():
        run = RealRun(3)
        run._put("_in_step", True)
        x, y = run.tokens(2)
        # What was drawn beside, and the table of the language, are far larger.
        assert left_bytes() == x.untyped_storage().nbytes() == 2 * 33 * 8
        assert y.shape == x.shape


def test_what_a_graph_keeps_is_counted_and_what_it_has_freed_is_not() -> None:
    with newly_made():
        factor = torch.ones((), requires_grad=True)
        total = (factor * torch.ones(50)).sum()
        assert left_bytes() == 4 + 4 + 200
        total.backward()
        assert left_bytes() == 4 + 4 + 4


def test_memories_get_numbers_in_their_order_and_keep_them() -> None:
    memories = Memories()
    a, b = torch.ones(4), torch.ones(4)
    assert memories.of([b, a]) == (0, 1)
    assert memories.of([a[:2], b.view(2, 2), torch.ones(1)]) == (1, 0, 2)
    del b
    for number in range(3, 50):
        # Its place in the process's memory is often that of the one before.
        assert memories.of([torch.ones(4), a]) == (number, 1)
