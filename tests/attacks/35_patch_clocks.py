"""Stops every clock of Python's, and loops."""

ROW = 35
OUTCOMES = ("limit",)
WITHIN_S = 14.0
BEFORE = """
import datetime, time
for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time", "time_ns", "monotonic_ns",
             "perf_counter_ns", "clock_gettime"):
    setattr(time, name, lambda *args: 0)
"""
ANSWER = "def rms(x, dim):\n    while True: pass"
