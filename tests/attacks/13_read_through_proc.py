"""Reads the solved notebook through other processes' roots, working directories and open files."""

ROW = 13
HARMLESS = True
BEFORE = """
import glob
for link in glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/cwd"):
    for name in ("@COURSE@/source/@LAB@/@LAB@.ipynb", "solutions/00_start_here.py"):
        try:
            text = open(f"{link}/{name}").read()
        except OSError:
            continue
        print("!breach! read", link, name, text[:100])
"""
