"""Leaves a daemon behind: forked twice, in a session of its own, deaf to signals."""

ROW = 23
DAMAGE = ("processes",)
BEFORE = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    os.closerange(0, 1000)
    time.sleep(60)
    os._exit(0)
"""
