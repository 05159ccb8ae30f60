"""A student whose name is a formula with commas and quotes."""

ROW = 41
HARMLESS = True
STUDENT = '=HYPERLINK("x"&A1,"a,b")'
DAMAGE = ("table",)
