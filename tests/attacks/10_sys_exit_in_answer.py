"""Ends the process politely, from the answer; the exercise beside it is answered right."""

ROW = 10
HARMLESS = True
EXERCISE = "02-blocked-sum"
ANSWER = "import sys\ndef blocked_sum(x, dim, block_size):\n    sys.exit(0)"
