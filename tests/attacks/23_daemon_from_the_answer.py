"""Leaves a daemon behind from within the exercise, and ends itself at once."""

ROW = 23
DAMAGE = ("processes",)
ANSWER = """
import ctypes, os, time
def rms(x, dim):
    if os.fork() == 0:
        os.setsid()
        ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    os._exit(0)
"""
