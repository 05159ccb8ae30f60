"""The virtual clock: what runs when, what the host waits for, and what overlaps."""

from __future__ import annotations

import json
import random

import pytest
import torch

from labkit.busy_times import BusyTimes
from labkit.simdevice import Command, Machine, SimDevice, as_plain, busy_s, from_plain, save_trace, timeline_of
from labkit.simdevice.cache import Cache
from labkit.simdevice.commands import MAX_COMMANDS

# A kernel on 1000 float32 takes 8 ms, a copy of them 4 ms, and the host 1 ms to launch any.
MACHINE = Machine(
    flops_per_s=1e6,
    memory_bytes_per_s=1e6,
    to_device_bytes_per_s=1e6,
    to_host_bytes_per_s=1e6,
    launch_s=1e-3,
    kernel_s=0.0,
    copy_s=0.0,
)


def ms(seconds: float) -> float:
    return round(1e3 * seconds, 6)


def spans(sim: SimDevice) -> list[tuple]:
    return [(one.lane, one.name, ms(one.start_s), ms(one.end_s)) for one in sim.trace]


def test_a_launch_returns_at_once_and_the_kernel_runs_later() -> None:
    with SimDevice(MACHINE) as sim:
        x = torch.zeros(1000, device=sim.device)  # writes 4000 bytes: 4 ms
        y = x + 1
        assert ms(sim.now_s) == 2
        sim.synchronize()
        assert ms(sim.now_s) == 13
    assert spans(sim) == [
        ("default stream", "zeros", 1, 5),
        ("default stream", "add", 5, 13),
        ("host", "synchronize", 2, 13),
    ]
    assert torch.equal(y, torch.ones(1000))


def test_host_clock_without_synchronization_measures_the_launch_and_events_the_kernel() -> None:
    with SimDevice(MACHINE) as sim:
        x = torch.zeros(1000).to(sim.device)
        start, end = sim.Event(enable_timing=True), sim.Event(enable_timing=True)
        before_s = sim.now_s
        start.record()
        x + x
        end.record()
        assert ms(sim.now_s - before_s) == 1
        with pytest.raises(RuntimeError, match="not ready"):
            start.elapsed_time(end)
        end.synchronize()
        assert start.elapsed_time(end) == pytest.approx(13)  # 4000 bytes read twice and written once, and the launch


def test_matrix_products_take_their_flops() -> None:
    with SimDevice(MACHINE) as sim:
        x = torch.zeros(100, 100).to(sim.device)
        x @ x
    assert ms(sim.trace[-1].end_s - sim.trace[-1].start_s) == 2000


def test_pinned_and_non_blocking_copies_let_the_host_go_on_and_no_others() -> None:
    for pinned, non_blocking, host_ms in ((True, True, 1), (True, False, 5), (False, True, 5), (False, False, 5)):
        with SimDevice(MACHINE) as sim:
            x = torch.zeros(1000)
            x = x.pin_memory() if pinned else x
            assert x.is_pinned() is pinned
            x.to(sim.device, non_blocking=non_blocking)
            assert ms(sim.now_s) == host_ms, (pinned, non_blocking)


def test_copy_and_kernel_overlap_on_two_streams_and_not_on_one() -> None:
    def makespan_ms(two: bool) -> float:
        with SimDevice(MACHINE) as sim:
            x, other = torch.zeros(1000).to(sim.device), torch.zeros(1000).pin_memory()
            sim.synchronize()
            before_s = sim.now_s
            with sim.stream(sim.Stream() if two else None):
                other.to(sim.device, non_blocking=True)
            x.neg()
            sim.synchronize()
            assert not sim.races
            return ms(sim.now_s - before_s)

    assert makespan_ms(two=True) == 10 and makespan_ms(two=False) == 13


def test_a_stream_waits_for_events_and_streams() -> None:
    with SimDevice(MACHINE) as sim:
        side = sim.Stream()
        x = torch.zeros(1000).pin_memory()
        with sim.stream(side):
            assert sim.current_stream() is side
            y = x.to(sim.device, non_blocking=True)
        assert sim.current_stream() is sim.default_stream()
        event = side.record_event()
        assert not event.query() and not side.query()
        sim.current_stream().wait_event(event)
        y.neg()
        side.synchronize()
        assert event.query() and side.query() and not sim.default_stream().query()
    assert spans(sim)[:2] == [("stream 1", "copy to device", 1, 5), ("default stream", "neg", 5, 13)]
    assert not sim.races


def test_an_event_that_was_never_recorded_holds_nobody_up() -> None:
    with SimDevice(MACHINE) as sim:
        event = sim.Event()
        event.wait()
        event.synchronize()
        assert event.query() and sim.now_s == 0


def test_reading_a_value_waits_for_it() -> None:
    readers = (float, bool, lambda x: x.tolist(), lambda x: x.nonzero(), lambda x: x[x == 0], lambda x: x.cpu())
    for read in readers:
        with SimDevice(MACHINE) as sim:
            read(torch.zeros(1, device=sim.device))
            assert sim.trace[-1].kind == "host waits", read


def test_an_engine_runs_one_thing_at_a_time_and_fills_gaps() -> None:
    engine = BusyTimes()
    assert [engine.place(*job) for job in ((0, 2), (5, 2), (0, 3), (0, 1), (1, 1))] == [0, 5, 2, 7, 8]


def test_the_same_commands_replayed_give_the_same_times(tmp_path) -> None:
    with SimDevice(MACHINE) as sim:
        (torch.zeros(64, 64).to(sim.device) @ torch.ones(64, 64).to(sim.device)).sum().item()
    again = timeline_of(from_plain(json.loads(json.dumps(as_plain(sim.commands)))), MACHINE)
    assert tuple(again.clock.spans) == sim.trace and again.clock.host_s == sim.now_s
    assert busy_s(sim.trace, "kernel", "to device") == pytest.approx(
        sim.trace[-1].end_s - 2 * MACHINE.launch_s, abs=3e-3
    )
    save_trace(sim.trace, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {one["args"]["name"] for one in events if one["ph"] == "M"} == {"default stream", "host"}


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "nap"},
        {"name": "no kind"},
        {"kind": "kernel", "flops": -1},
        {"kind": "kernel", "flops": 1.5},
        {"kind": "alloc", "block": 1, "place": "moon"},
        {"kind": "kernel", "reads": ["x"]},
        {"kind": "kernel", "more": 1},
    ],
)
def test_commands_of_another_form_are_refused(bad: dict) -> None:
    with pytest.raises(ValueError):
        from_plain([bad])


@pytest.mark.parametrize(
    ("many", "problem"),
    [
        ([{"kind": "empty"}] * (MAX_COMMANDS + 1), "10,001 commands; 10,000 are the most"),
        ([{"kind": "kernel", "reads": [1] * 101}] * 1000, "touch memory 101,000 times, on 1 streams"),
        ([{"kind": "kernel", "stream": n} for n in range(65)], "touch memory 0 times, on 65 streams"),
    ],
)
def test_more_commands_than_any_exercise_takes_are_refused(many: list, problem: str) -> None:
    """To work out a list takes more than its length: the vector clocks grow with its streams, too."""
    with pytest.raises(ValueError, match=problem):
        from_plain(many)
    assert from_plain(many[:-1] if len(many) != 1000 else many[:990])


def test_the_cache_throws_out_what_was_touched_longest_ago() -> None:
    """As a list in the order of touches says, which is added up at every step."""
    rng, sizes, cache, held = random.Random(1), {}, Cache(100), []
    for _ in range(2000):
        block = rng.randrange(12)
        if block not in sizes:
            sizes[block] = rng.randrange(1, 120)
            cache.run(Command("alloc", block=block, nbytes=sizes[block]))
        elif rng.random() < 0.2:
            del sizes[block]
            cache.run(Command("free", block=block))
            held = [one for one in held if one != block]
        else:
            found = cache.run(Command("kernel", reads=(block,), nbytes=sizes[block]))
            assert found == (sizes[block] if block in held else 0)
            held = [] if sizes[block] > 100 else [*(one for one in held if one != block), block]
            while sum(sizes[one] for one in held) > 100:
                held.pop(0)


@pytest.mark.parametrize("bad", [{"flops_per_s": 0}, {"to_host_bytes_per_s": -1}, {"launch_s": -1e-6}])
def test_a_machine_without_rates_is_refused(bad: dict) -> None:
    with pytest.raises(ValueError):
        Machine(**bad)
