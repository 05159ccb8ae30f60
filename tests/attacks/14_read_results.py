"""Reads the stored results, the log and the course's key."""

ROW = 14
HARMLESS = True
BEFORE = """
import glob
for path in glob.glob("@COURSE@/.grading/**", recursive=True):
    try:
        data = open(path, "rb").read(2000)
    except OSError:
        continue
    print("!breach! read", path, data.hex()[:64])
"""
