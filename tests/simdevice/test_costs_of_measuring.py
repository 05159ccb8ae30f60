"""What a timing has to keep out: first calls, the cache, jitter; and what stops the host unasked."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest
import torch

from labkit.simdevice import Machine, SimDevice, implicit_syncs

KB = 4000


def durations_us(sim: SimDevice) -> list[float]:
    return [round(1e6 * (span.end_s - span.start_s), 6) for span in sim.trace if span.kind == "kernel"]


def test_the_first_launch_of_each_kernel_keeps_the_host() -> None:
    machine = Machine(first_call_s=1e-3, launch_s=0.0)
    with SimDevice(machine) as sim:
        x = torch.zeros(10, device=sim.device)
        assert sim.now_s == pytest.approx(1e-3)
        x + x
        x + x
        assert sim.now_s == pytest.approx(2e-3)
        assert [span.name for span in sim.trace if span.stream < 0] == ["load zeros", "load add"]
        assert [span.name for span in sim.launches] == ["zeros", "add", "add"]


def test_what_is_in_the_cache_moves_faster_until_something_larger_passes() -> None:
    machine = Machine(memory_bytes_per_s=1e9, cache_bytes_per_s=4e9, cache_bytes=2 * KB, kernel_s=0.0, flops_per_s=1e15)
    with SimDevice(machine) as sim:
        x = torch.empty(1000, device=sim.device)
        x.sum()
        x.sum()
        large = torch.empty(3000, device=sim.device).fill_(0)
        x.sum()
    cold, warm, _, cold_again = durations_us(sim)
    assert cold == pytest.approx(4, rel=0.01) and warm == pytest.approx(1, rel=0.01) and cold_again == cold
    assert sim.get_device_properties().L2_cache_size == 2 * KB and large.numel() == 3000


def test_the_one_touched_longest_ago_goes_first() -> None:
    with SimDevice(Machine(cache_bytes=2 * KB, kernel_s=0.0)) as sim:
        x, y, z = (torch.empty(1000, device=sim.device) for _ in range(3))
        for tensor in (x, y, x, z, x, y):
            tensor.fill_(1)
    cold, _, warm, _, also_warm, gone = durations_us(sim)
    assert warm == also_warm < cold == gone


def test_jitter_only_lengthens_and_is_the_same_on_every_run() -> None:
    machine = Machine(jitter=0.8, kernel_s=0.0)
    slow_downs = [machine.slow_down(number) for number in range(1000)]
    assert min(slow_downs) >= 1 and max(slow_downs) <= 1.8
    assert statistics.median(slow_downs) == pytest.approx(1.1, abs=0.005)
    assert statistics.mean(slow_downs) == pytest.approx(1.2, abs=0.005)
    assert [Machine().slow_down(number) for number in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (lambda x: x.sum().item(), "_local_scalar_dense"),
        (lambda x: float(x[0]), "_local_scalar_dense"),
        (lambda x: bool(x[0] > 0), "_local_scalar_dense"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: x.nonzero(), "nonzero"),
        (lambda x: x[x > 0], "index"),
        (lambda x: x.cpu(), "copy to host"),
        (lambda x: x.copy_(torch.ones(4)), "copy to device"),
        (lambda x: f"{x[0]:.2f}", "_local_scalar_dense"),
    ],
)
def test_what_stops_the_host_unasked_is_counted(program: Callable, name: str) -> None:
    with SimDevice() as sim:
        x = torch.zeros(4, device=sim.device)
        program(x)
    assert [one.name for one in implicit_syncs(sim.commands)] == [name]


def test_printing_a_tensor_stops_the_host() -> None:
    with SimDevice() as sim:
        repr(torch.zeros(4, device=sim.device))
        assert implicit_syncs(sim.commands)


def test_what_is_asked_for_is_not_counted() -> None:
    with SimDevice() as sim:
        x = torch.ones(4).pin_memory().to(sim.device, non_blocking=True)
        sim.current_stream().record_event().synchronize()
        sim.synchronize()
        x.to("cpu", non_blocking=True)
    assert implicit_syncs(sim.commands) == ()
