"""Stops every clock of CPU time, lifts its limits, swallows their signals, and adds by a loop that takes too long."""

ROW = 35
STOCK = False
EXERCISE = "02-merge-smallest"
OUTCOMES = ("limit",)
BEFORE = """
import os, resource, signal, time
for name in ("process_time", "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns"):
    setattr(time, name, lambda *args: 0)
os.times = lambda: (0.0,) * 5
for number in (signal.SIGXCPU, signal.SIGPROF, signal.SIGVTALRM, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
signal.signal = signal.setitimer = lambda *args: (0.0, 0.0)
for limits in ((resource.RLIM_INFINITY,) * 2, (10**6, resource.RLIM_INFINITY)):
    try:
        resource.setrlimit(resource.RLIMIT_CPU, limits)
    except (OSError, ValueError) as error:
        print(error)
resource.setrlimit = lambda *args: None
"""
ANSWER = """
def merge_smallest(values):
    left = list(values)
    while len(left) > 1:
        first = min(left)
        left.remove(first)
        second = min(left)
        left.remove(second)
        left.append(first + second)
    return left[0]
"""
