"""Calls the library's exact sum where writing one is the point."""

ROW = 46
HARMLESS = True
EXERCISE = "02-merge-smallest"
ANSWER = "import math\ndef merge_smallest(values):\n    return math.fsum(values)"
