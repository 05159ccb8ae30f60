"""Ends the process at once, from a cell."""

ROW = 11
HARMLESS = True
BEFORE = "import os\nos._exit(0)"
