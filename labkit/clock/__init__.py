"""Threads, queues and events on a virtual clock, and queues of known work: the same every time, in no time at all."""

from labkit.clock.queues import Task, makespan, play
from labkit.clock.turns import Span, ThreadsHang
from labkit.clock.virtual import VirtualClock

__all__ = ["Span", "Task", "ThreadsHang", "VirtualClock", "makespan", "play"]
