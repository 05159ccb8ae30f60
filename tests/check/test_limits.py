"""Limits on time in one another, and beside timers that are somebody else's."""

from __future__ import annotations

import signal
import time

import pytest

from labkit.limits import OverLimit, time_limit

WALL = signal.ITIMER_REAL


@pytest.mark.parametrize("inner_s", [0.9, 60])
def test_the_limit_around_another_one_goes_on_after_it(inner_s: float) -> None:
    with pytest.raises(OverLimit, match=r"^1 s of wall time"), time_limit(1):
        with time_limit(inner_s):
            pass
        time.sleep(5)


def test_the_limit_around_another_one_goes_on_in_it() -> None:
    with pytest.raises(OverLimit, match=r"^0\.2 s of wall time"), time_limit(0.2), time_limit(60):
        time.sleep(5)


@pytest.mark.parametrize("inner_s", [0.15, 60])
def test_so_does_one_on_cpu_time(inner_s: float) -> None:
    with pytest.raises(OverLimit, match=r"^0\.2 s of cpu time"), time_limit(200, 0.2):
        with time_limit(100, inner_s):
            pass
        end_s = time.process_time() + 5
        while time.process_time() < end_s:
            pass


def test_the_one_that_is_due_first_is_raised() -> None:
    with time_limit(100, 100):
        with pytest.raises(OverLimit, match=r"^0\.1 s of wall time"), time_limit(0.1):
            time.sleep(5)
        assert 0 < signal.getitimer(WALL)[0] <= 100 - 0.1, "its time counts"


def test_a_timer_of_somebody_else_s_is_put_back() -> None:
    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        signal.setitimer(WALL, 0.5)
        with time_limit(100):
            time.sleep(0.6)
            assert not rung
        time.sleep(0.1)
        assert rung == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)
