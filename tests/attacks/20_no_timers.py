"""Turns every timer off, makes the time limit do nothing, and sleeps."""

ROW = 20
OUTCOMES = ("limit",)
WITHIN_S = 14.0
BEFORE = """
import contextlib, signal, time, labkit.limits, labkit.observe.runs
labkit.observe.runs.time_limit = labkit.limits.time_limit = lambda *args: contextlib.nullcontext()
sleep = time.sleep
signal.setitimer = lambda *args: None
time.monotonic = time.perf_counter = time.time = lambda: 0.0
"""
ANSWER = "def rms(x, dim):\n    sleep(10**6)"
