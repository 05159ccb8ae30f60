"""Queues of known work: each runs its tasks in order, and a task waits for what it needs on another queue."""

from __future__ import annotations

import pytest

from labkit.clock import Span, Task, makespan, play


def test_queues_run_side_by_side_and_wait_for_one_another() -> None:
    spans = play(
        [
            Task("load 0", "wire", 3.0),
            Task("load 1", "wire", 3.0),
            Task("use 0", "GPU", 4.0, ("load 0",)),
            Task("use 1", "GPU", 4.0, ("load 1",)),
            Task("send", "wire", 1.0, ("use 0", "load 1")),
        ]
    )
    assert spans["load 1"] == Span("wire", "load 1", 3.0, 6.0)
    assert (spans["use 0"].start_s, spans["use 1"].start_s) == (3.0, 7.0)
    assert (spans["send"].start_s, makespan(spans)) == (7.0, 11.0)


def test_a_queue_keeps_its_order_also_where_a_later_task_could_begin() -> None:
    tasks = [Task("slow", "GPU", 5.0), Task("waits", "wire", 1.0, ("slow",)), Task("ready", "wire", 1.0)]
    assert play(tasks)["ready"].start_s == 6.0


def test_nothing_takes_no_time() -> None:
    assert play([]) == {} and makespan({}) == 0.0


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(ValueError, match="there are two tasks a"):
        play([Task("a", "GPU", 1.0), Task("a", "wire", 1.0)])
    with pytest.raises(ValueError, match="b needs a, which was not given before it"):
        play([Task("b", "GPU", 1.0, ("a",)), Task("a", "wire", 1.0)])
