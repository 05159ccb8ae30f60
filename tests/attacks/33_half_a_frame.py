"""Sends the beginning of a frame, and then nothing."""

ROW = 33
OUTCOMES = ("limit",)
WITHIN_S = 14.0
ANSWER = """
import os, stat, struct, time
def rms(x, dim):
    for number in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, struct.pack("<IQ", 1000, 10**6) + b"{")
        except OSError:
            pass
    while True:
        time.sleep(1)
"""
