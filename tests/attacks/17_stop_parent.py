"""Stops the process that started it, and its whole group, without killing them."""

ROW = 17
DAMAGE = ("grader",)
BEFORE = """
import os, signal
for kill, whom in ((os.kill, os.getppid()), (os.killpg, os.getpgid(os.getppid()) if os.getppid() else 0)):
    if whom:
        try:
            kill(whom, signal.SIGSTOP)
        except OSError as error:
            print(error)
"""
