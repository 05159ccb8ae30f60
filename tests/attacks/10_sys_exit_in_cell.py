"""Ends the process politely, from a cell."""

ROW = 10
HARMLESS = True
BEFORE = "import sys\nsys.exit(0)"
