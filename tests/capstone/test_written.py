"""Which parts of a memory have been written: rows twice, a view, another tensor's part of the same memory."""

from __future__ import annotations

import torch

from labkit.capstone.written import MOST_PIECES, Written, pieces_of


def test_the_pieces_of_a_view_are_the_bytes_that_it_shows() -> None:
    whole = torch.zeros(6, 4)
    assert pieces_of(whole) == pieces_of(whole.T) == pieces_of(whole.view(3, 8)) == [(0, 96)]
    assert pieces_of(whole[2:4]) == [(32, 64)]
    assert pieces_of(whole[:, 1:3])[:2] == [(4, 12), (20, 28)] and len(pieces_of(whole[:, 1:3])) == 6
    assert pieces_of(whole[0, 0].expand(5, 7)) == [(0, 4)]
    assert pieces_of(whole[:0]) == []
    assert pieces_of(torch.zeros(MOST_PIECES + 1, 2)[:, 0]) == []


def test_the_same_half_twice_is_no_whole() -> None:
    whole = torch.zeros(6, 4)
    written = Written([whole])
    written.add(whole[:3])
    written.add(whole[:3])
    assert not written.covers(whole) and written.covers(whole[:3])
    written.add(whole[3:, ::2])
    assert not written.covers(whole)
    written.add(whole[3:, 1::2])
    assert written.covers(whole)


def test_a_tensor_is_not_written_by_what_another_gets_in_the_same_memory() -> None:
    memory = torch.zeros(20)
    first, second = memory[:12].view(3, 4), memory[12:]
    written = Written([first, second])
    written.add(first)
    assert written.covers(first) and not written.covers(second)
    written.add(memory)
    assert written.covers(second)


def test_a_new_memory_counts_from_when_it_is_made() -> None:
    one, other = torch.zeros(3), torch.zeros(3)
    written = Written([one])
    written.add(other)
    assert not written.covers(other)
    written.begin(other)
    written.add(other)
    assert written.covers(other) and not written.covers(one)
