"""Sleeps in C without letting go of the interpreter's lock, so that no Python code can run beside it."""

ROW = 20
OUTCOMES = ("limit",)
WITHIN_S = 14.0
ANSWER = "import ctypes\ndef rms(x, dim):\n    ctypes.PyDLL(None).sleep(10**6)"
