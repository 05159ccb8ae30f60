"""Threads, queues and events on a virtual clock: the same run every time, and a minute of work takes no time at all."""

from labkit.clock.turns import Span, ThreadsHang
from labkit.clock.virtual import VirtualClock

__all__ = ["Span", "ThreadsHang", "VirtualClock"]
