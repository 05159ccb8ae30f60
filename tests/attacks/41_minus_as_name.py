"""A student whose name begins with a minus, as an option of a program does."""

ROW = 41
HARMLESS = True
STUDENT = "-2+3+cmd"
DAMAGE = ("table",)
