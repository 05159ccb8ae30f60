"""Gives the whole class 100 points in the gradebook."""

ROW = 15
DAMAGE = ("grades",)
BEFORE = """
import sqlite3
with sqlite3.connect("file:@COURSE@/gradebook.db?mode=rw", uri=True, timeout=1) as db:
    print(db.execute("select email from student").fetchall())
    db.execute("update grade set manual_score = 100")
print("!breach! wrote the gradebook")
"""
