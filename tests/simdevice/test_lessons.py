"""What two slides teach: the host's clock without a wait times the launch, and with one the work."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from labkit.simdevice import Machine, SimDevice

LAUNCH_S, PRODUCT_S = 1e-5, 2e-2
# 2 · 100³ operations of a matrix product, and nothing else takes time.
MACHINE = Machine(launch_s=LAUNCH_S, kernel_s=0.0, flops_per_s=2 * 100**3 / PRODUCT_S, memory_bytes_per_s=1e15)


def timed_s(wait: Callable[[SimDevice], object]) -> float:
    """The same code with one line more or less: read the clock, multiply ten times, (wait), read the clock."""
    with SimDevice(MACHINE) as sim:
        x = torch.ones(100, 100).to(sim.device)
        sim.synchronize()
        before_s = sim.now_s
        for _ in range(10):
            y = x @ x
        wait(sim)
        return sim.now_s - before_s + 0 * len(y)


def test_without_a_wait_the_launches_are_timed() -> None:
    assert timed_s(lambda sim: None) == pytest.approx(10 * LAUNCH_S)


@pytest.mark.parametrize(
    "wait",
    [
        lambda sim: sim.synchronize(),
        lambda sim: sim.current_stream().synchronize(),
        lambda sim: sim.current_stream().record_event().synchronize(),
    ],
)
def test_with_a_wait_the_work_is(wait: Callable) -> None:
    assert timed_s(wait) == pytest.approx(LAUNCH_S + 10 * PRODUCT_S)


def test_the_wait_must_be_for_the_stream_that_works() -> None:
    assert timed_s(lambda sim: sim.Stream().synchronize()) == pytest.approx(10 * LAUNCH_S)


def test_a_wait_before_the_work_is_no_wait_for_it() -> None:
    """An event that was recorded before the work happens before it."""

    def too_early() -> float:
        with SimDevice(MACHINE) as sim:
            x = torch.ones(100, 100).to(sim.device)
            sim.synchronize()
            before_s = sim.now_s
            event = sim.current_stream().record_event()
            x @ x
            event.synchronize()
            return sim.now_s - before_s

    assert too_early() == pytest.approx(LAUNCH_S)
