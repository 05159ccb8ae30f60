"""Makes the check cell end with a score of -1."""

ROW = 8
HARMLESS = True
BEFORE = "import labkit\ncheck = labkit.check = lambda *args, **kwargs: -1.0"
