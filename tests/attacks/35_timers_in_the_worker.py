"""Sets every timer of the process before its answer is asked for, so that they go off in whatever the worker does."""

ROW = 35
STOCK = False
OUTCOMES = ("failed", "limit", "suspected", "unanswered")
WITHIN_S = 30.0
BEFORE = """
import os, random, signal
def go_off(number, frame):
    raise random.choice((TimeoutError, BlockingIOError, MemoryError, SystemExit, KeyError, BaseException))("now")
timers = {signal.SIGALRM: signal.ITIMER_REAL, signal.SIGVTALRM: signal.ITIMER_VIRTUAL, signal.SIGPROF: signal.ITIMER_PROF}
for number, timer in timers.items():
    signal.signal(number, go_off)
setitimer, signal.signal = signal.setitimer, lambda *args: None
def start():
    for timer in timers.values():
        setitimer(timer, 0.001, 0.0005)
os.register_at_fork(after_in_child=start)
signal.setitimer = lambda *args: (0.0, 0.0)
"""
ANSWER = "def rms(x, dim):\n    return x.abs().mean(dim)"
