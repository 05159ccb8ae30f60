"""What is made of a program: its events of the allocator, what a timing method does, the device that there is."""

from __future__ import annotations

import torch

from labkit import measure_step
from labkit.devices import has_gpu
from labkit.simdevice import (
    Machine,
    SimDevice,
    alloc_events_of_commands,
    alloc_events_of_profile,
    auto_device,
    probe_timing,
)


def test_alloc_events_of_a_program_on_the_device() -> None:
    with SimDevice() as sim:
        x = torch.zeros(1000).to(sim.device)
        y = x + 1
        y.to("cpu", non_blocking=True)
        del y
        sim.empty_cache()
        torch.zeros(0, device=sim.device)
    events = alloc_events_of_commands(sim.commands)
    kinds = [kind for kind, _, _ in events[:4]]
    assert kinds == ["malloc", "malloc", "free", "empty_cache"]
    assert [n_bytes for _, _, n_bytes in events[:2]] == [4000, 4000] and events[2][1] == events[1][1]
    del x


def test_alloc_events_of_a_profile_begin_with_what_was_there_and_balance() -> None:
    profile = measure_step(lambda: torch.nn.Linear(64, 32), torch.zeros(8, 64), device="cpu", n_steps=1)
    events = alloc_events_of_profile(profile)
    assert {n_bytes for kind, _, n_bytes in events[:3] if kind == "malloc"} == {64 * 32 * 4, 32 * 4, 8 * 64 * 4}
    live: dict[int, int] = {}
    peak_bytes = 0
    for kind, ticket, n_bytes in events:
        if kind == "malloc":
            assert ticket not in live and n_bytes > 0
            live[ticket] = n_bytes
        else:
            live.pop(ticket)
        peak_bytes = max(peak_bytes, sum(live.values()))
    assert peak_bytes == profile.peak_bytes and sum(live.values()) == profile.live_bytes


def test_a_method_is_watched_from_its_first_reading_to_its_last() -> None:
    def method(fn, cuda, device, now_s) -> float:
        before_s = now_s()
        fn()
        cuda.Event(enable_timing=True).record()
        return 1e3 * (now_s() - before_s)

    machine = Machine(launch_s=1e-3, memory_bytes_per_s=1e6, kernel_s=0.0)
    one = probe_timing(method, lambda device: torch.ones(1000).to(device).neg_, machine)
    assert round(one.read_ms, 6) == 1
    assert [round(1e3 * (at - one.clock_reads_s[0]), 6) for at in (*one.clock_reads_s, *one.events_s)] == [0, 1, 9]
    assert [span.name for span in one.spans] == ["neg"], "the wait at the end is not the method's"
    assert [span.name for span in one.launches] == ["neg"]


def test_auto_device_is_the_machines_gpu_or_a_simulated_one() -> None:
    with auto_device(Machine()) as (cuda, device, now_s):
        assert isinstance(cuda, SimDevice) != has_gpu() and device.type != "cpu"
        before_s = now_s()
        torch.ones(3).to(device)
        cuda.synchronize()
        assert now_s() > before_s
