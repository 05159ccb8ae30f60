"""Reads from address zero; the exercise beside it is answered right."""

ROW = 11
HARMLESS = True
EXERCISE = "02-blocked-sum"
ANSWER = "import ctypes\ndef blocked_sum(x, dim, block_size):\n    ctypes.string_at(0)"
