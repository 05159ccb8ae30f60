"""Sends a byte now and then, so that the grader never waits long for the next one."""

ROW = 33
OUTCOMES = ("limit",)
WITHIN_S = 14.0
ANSWER = """
import os, stat, struct, time
def rms(x, dim):
    sockets = []
    for number in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                sockets.append(number)
        except OSError:
            pass
    for byte in struct.pack("<IQ", 4_000_000, 200_000_000) + b" " * 10**6:
        for number in sockets:
            try:
                os.write(number, bytes([byte]))
            except OSError:
                pass
        time.sleep(0.2)
"""
