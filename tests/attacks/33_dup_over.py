"""Puts a pipe of its own in the place of every descriptor."""

ROW = 33
OUTCOMES = ("limit", "failed", "suspected")
ANSWER = """
import os
def rms(x, dim):
    read, write = os.pipe()
    for number in range(64):
        if number not in (read, write):
            try:
                os.dup2(write, number)
            except OSError:
                pass
    return x.abs().mean(dim)
"""
