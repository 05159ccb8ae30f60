"""Sets every timer and sends itself every signal that it may, some of them pending for later."""

ANSWER = """
import os, signal
def rms(x, dim):
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0.001, 0.001)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        os.kill(os.getpid(), number)
    return x
"""
