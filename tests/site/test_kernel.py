"""A kernel's client looks for its messages again and again, as long as it was told to wait."""

from __future__ import annotations

import asyncio
import queue

import pytest
from jupyter_client.channels import AsyncZMQSocketChannel

from grading.site.kernel import LOOK_S, PatientChannel


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each look was to take; a message that nobody was told of is seen at the third."""
    times: list[float] = []

    async def look(self: PatientChannel, timeout: float) -> dict:
        times.append(timeout)
        if len(times) < 3:
            raise queue.Empty
        return {"content": "here"}

    monkeypatch.setattr(AsyncZMQSocketChannel, "get_msg", look)
    return times


@pytest.mark.parametrize("timeout", [None, 600.0])
def test_a_message_that_was_missed_is_found_at_the_next_look(looked: list[float], timeout: float | None) -> None:
    channel = PatientChannel.__new__(PatientChannel)
    assert asyncio.run(channel.get_msg(timeout)) == {"content": "here"}
    assert len(looked) == 3 and max(looked) <= LOOK_S


def test_where_nothing_comes_the_wait_ends(looked: list[float]) -> None:
    channel = PatientChannel.__new__(PatientChannel)
    with pytest.raises(queue.Empty):
        asyncio.run(channel.get_msg(0.0))
    assert looked == [0.0]
