"""Calls the library's sum by a name that is put together when it runs."""

ROW = 46
HARMLESS = True
EXERCISE = "02-merge-smallest"
ANSWER = "import math\ndef merge_smallest(values):\n    return getattr(math, 'fs' + 'um')(values)"
