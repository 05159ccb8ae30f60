"""Stores a forged result for every result that there is, and takes the course's lock."""

ROW = 15
DAMAGE = ("grades", "grader")
BEFORE = """
import fcntl, glob, os
for path in glob.glob("@COURSE@/.grading/results/*/*.json"):
    text = open(path).read().replace('"failed"', '"passed"').replace('"score": 0.0', '"score": 1.0')
    open(path, "w").write(text)
    print("!breach! wrote", path)
lock = open("@COURSE@/.grading/lock", "w")
print("!breach! opened the lock")
"""
