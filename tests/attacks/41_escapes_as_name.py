"""A student whose name steers the terminal and turns the writing around."""

ROW = 41
HARMLESS = True
STUDENT = "evil\u202egnp.exe"
OUTCOMES = ("unreadable",)
DAMAGE = ("table", "terminal", "page")
