"""Turns the settings off that end it with its parent, and those that make it visible."""

STOCK = False
DAMAGE = ("processes",)
BEFORE = """
import ctypes, os, time
libc = ctypes.CDLL(None)
for option, value in ((1, 0), (4, 1), (36, 1), (0x59616d61, -1), (23, 0), (53, 1)):
    libc.prctl(option, value, 0, 0, 0)
for _ in range(3):
    if os.fork() == 0:
        libc.prctl(1, 0, 0, 0, 0)
        os.setsid()
        if os.fork() == 0:
            time.sleep(45)
        os._exit(0)
"""
