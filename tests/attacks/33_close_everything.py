"""Closes every descriptor, from a cell."""

ROW = 33
BEFORE = "import os\nos.closerange(0, 4096)"
