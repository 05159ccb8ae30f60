"""Reads the solved notebook from the course."""

ROW = 13
HARMLESS = True
BEFORE = """
text = open("@COURSE@/source/@LAB@/@LAB@.ipynb").read()
at = text.index("canary-")
print("!breach! read the solution", text[at - 200:at + 300])
"""
