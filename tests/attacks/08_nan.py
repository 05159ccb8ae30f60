"""Makes the check cell end with a score that is no number."""

ROW = 8
HARMLESS = True
BEFORE = "import labkit\ncheck = labkit.check = lambda *args, **kwargs: float('nan')"
