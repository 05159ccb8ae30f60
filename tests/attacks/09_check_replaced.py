"""A check that says nothing at all."""

ROW = 9
HARMLESS = True
BEFORE = "import labkit\ncheck = labkit.check = lambda *args, **kwargs: None"
