"""A file that says it is a terabyte."""

ROW = 25
BEFORE = """
import os, tempfile
with tempfile.TemporaryFile() as file:
    os.truncate(file.fileno(), 2**40)
print("!breach! made a file of a terabyte")
"""
