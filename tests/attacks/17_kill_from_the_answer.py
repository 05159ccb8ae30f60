"""Kills the processes above it, from within the exercise."""

ROW = 17
DAMAGE = ("grader",)
OUTCOMES = ("failed", "limit", "suspected", "infrastructure")
ANSWER = """
import os, signal
def rms(x, dim):
    for _ in range(3):
        parent = os.getppid()
        if parent > 1:
            os.kill(parent, signal.SIGKILL)
    return x
"""
