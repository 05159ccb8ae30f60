"""Starts programs without forking this process, as many as it can."""

ROW = 22
DAMAGE = ("processes", "crowd")
BEFORE = """
import os
count = 0
try:
    for _ in range(2000):
        os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
        count += 1
except OSError as error:
    print(error)
print("started", count)
if count == 2000:
    print("!breach! no limit on processes")
"""
