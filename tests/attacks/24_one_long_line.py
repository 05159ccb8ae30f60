"""Prints 60 MB on one line, to both streams."""

ROW = 24
HARMLESS = True
BEFORE = "import sys\nprint('x' * 60_000_000)\nprint('y' * 60_000_000, file=sys.stderr)"
ANSWER = "@RIGHT@"
EARNS = LEAST = 1.0
