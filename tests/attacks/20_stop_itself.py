"""Stops its own process, so that it uses no time at all."""

ROW = 20
OUTCOMES = ("limit",)
WITHIN_S = 14.0
ANSWER = "import os, signal\ndef rms(x, dim):\n    os.kill(os.getpid(), signal.SIGSTOP)"
