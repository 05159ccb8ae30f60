"""bench on the simulated device, on a host with a clock of its own, and, where there is one, on a GPU."""

from __future__ import annotations

import itertools
import time

import pytest
import torch

from labkit import bench
from labkit.devices import has_gpu
from labkit.simdevice import Machine, SimDevice

N = 10_000
MACHINE = Machine(
    memory_bytes_per_s=1e9, cache_bytes_per_s=4e9, cache_bytes=20 * N, first_call_s=5e-3, kernel_s=0.0, launch_s=1e-6
)


def on_simulator(machine: Machine = MACHINE, **options):
    with SimDevice(machine) as sim:
        x = torch.ones(N, device=sim.device)
        return bench(lambda: x.neg_(), sim, **options)


def test_the_device_is_timed_without_first_calls_and_from_a_cold_cache() -> None:
    timing = on_simulator(n_repeats=7)
    assert timing.times_ms == pytest.approx([8e-5 * N / 10] * 7)
    assert timing.first_ms == pytest.approx(5 + 2e-5 * N / 10, rel=1e-3), "the load; the cache is still warm"
    assert (timing.method, timing.cold) == ("CUDA events", True)


def test_the_flush_can_be_left_out() -> None:
    timing = on_simulator(n_repeats=7, flush_cache=False)
    assert timing.median_ms == pytest.approx(2e-5 * N / 10, rel=0.1) and not timing.cold


def test_the_median_and_its_spread_tell_the_jitter() -> None:
    timing = on_simulator(Machine(**{**vars(MACHINE), "jitter": 0.8}), n_repeats=80)
    quiet_ms = 8e-5 * N / 10
    assert timing.median_ms == pytest.approx(1.1 * quiet_ms, rel=0.02)
    assert timing.quantile_ms(0.2) == pytest.approx(1.006 * quiet_ms, rel=0.02)
    assert timing.quantile_ms(0.8) == pytest.approx(1.41 * quiet_ms, rel=0.03)


@pytest.mark.parametrize(("one_ms", "n"), [(0.01, 100), (4, 50), (1000, 10)])
def test_as_many_repeats_as_the_budget_has_room_for(one_ms: float, n: int) -> None:
    with SimDevice(Machine(flops_per_s=2 * 8**3 / one_ms * 1e3, kernel_s=0.0)) as sim:
        x = torch.ones(8, 8, device=sim.device)
        assert len(bench(lambda: x @ x, sim).times_ms) == n


def ticking(*steps_s: float):
    """A clock whose readings are these steps apart, over and over."""
    times = itertools.accumulate(itertools.cycle(steps_s))
    return lambda: next(times)


def test_the_hosts_clock_is_read_around_each_call() -> None:
    calls = []
    timing = bench(lambda: calls.append(1), n_warmup=2, n_repeats=4, now_s=ticking(2e-3, 1.0))
    assert len(calls) == 1 + 2 + 4
    assert timing.times_ms == pytest.approx([1000.0] * 4) and timing.method == "host clock" and not timing.cold


def test_the_text_has_every_figure_with_its_unit() -> None:
    assert str(on_simulator(n_repeats=7)) == (
        "0.08 ms [0.08, 0.08] (median [p20, p80] of 7 calls; CUDA events, cold cache; first call 5.02 ms)"
    )


@pytest.mark.skipif(has_gpu(), reason="with a GPU, CUDA events are taken")
def test_work_of_a_device_is_not_timed_by_the_host() -> None:
    with SimDevice() as sim, pytest.raises(ValueError, match="hand the device over"):
        x = torch.ones(3, device=sim.device)
        bench(lambda: x + x, n_repeats=3)


def test_work_of_the_host_is_not_timed_by_a_gpu_that_nobody_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with SimDevice() as sim:
        x, far = torch.ones(3), torch.ones(3, device=sim.device)
        monkeypatch.setattr(torch, "cuda", sim)
        monkeypatch.setattr("labkit.meters.timing.has_gpu", lambda: True)
        with pytest.raises(ValueError, match=r"the host's, bench\(fn, now_s=time\.perf_counter\)"):
            bench(lambda: {"sum": x + x}, n_repeats=3)
        assert bench(lambda: x + x, n_repeats=3, now_s=ticking(1.0)).method == "host clock"
        for fn in (lambda: far + far, lambda: (x, far + far), lambda: [far.neg_()].clear()):
            assert bench(fn, n_repeats=3).method == "CUDA events"
        assert bench(lambda: (far + far).cpu(), sim, n_repeats=3).method == "CUDA events"


@pytest.mark.gpu
def test_on_a_gpu_work_of_the_host_is_timed_when_it_is_asked_for() -> None:
    x = torch.ones(2**20)
    with pytest.raises(ValueError, match="fn returns tensors of the CPU"):
        bench(lambda: x + x)
    assert bench(lambda: x + x, now_s=time.perf_counter).method == "host clock"


def test_a_device_on_which_nothing_runs_is_refused() -> None:
    with SimDevice() as sim, pytest.raises(ValueError, match="nothing ran on the device"):
        bench(lambda: torch.ones(3) + 1, sim, n_repeats=3)


def test_a_call_shorter_than_the_clock_can_tell_is_refused() -> None:
    with pytest.raises(ValueError, match="takes 200 ns, and reading the clock"):
        bench(lambda: None, n_repeats=3, now_s=ticking(2e-7))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"fn": 3.0}, TypeError, "was given a float"),
        ({"n_repeats": 0}, ValueError, "n_repeats 1 or more"),
        ({"n_warmup": -1}, ValueError, "they are -1 and None"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        bench(**{"fn": lambda: None, **options})


@pytest.mark.gpu
def test_on_a_gpu_it_agrees_with_tritons() -> None:
    from triton.testing import do_bench

    x = torch.randn(4096, 4096, device="cuda")
    # In turns, and the quickest of each: what else the GPU does meanwhile slows either.
    pairs = [(bench(lambda: x @ x).median_ms, do_bench(lambda: x @ x, return_mode="median")) for _ in range(3)]
    ours, tritons = (min(each) for each in zip(*pairs, strict=True))
    assert ours == pytest.approx(tritons, rel=0.05)
