"""A student whose name would start a program in a spreadsheet."""

ROW = 41
HARMLESS = True
STUDENT = "@SUM(1+1)*cmd|' C calc'!A0"
DAMAGE = ("table",)
OUTCOMES = ("failed", "unreadable")
