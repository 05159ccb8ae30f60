"""Locks the gradebook for longer than anybody wants to wait."""

ROW = 15
DAMAGE = ("grades", "grader")
BEFORE = """
import sqlite3, time
db = sqlite3.connect("file:@COURSE@/gradebook.db?mode=rw", uri=True, timeout=1)
db.execute("begin exclusive")
print("!breach! locked the gradebook")
time.sleep(20)
"""
