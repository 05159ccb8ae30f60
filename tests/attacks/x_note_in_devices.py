"""Sets the time of devices that everybody may write to, and looks for a time that was set."""

TWICE = True
DAMAGE = ("leftovers",)
BEFORE = """
import os, time
for name in ("null", "full", "random", "urandom", "zero"):
    path = f"/dev/{name}"
    try:
        if time.time() - os.stat(path).st_mtime < 120:
            print("!breach! found the time of", path)
        os.utime(path)
        print("!breach! set the time of", path)
    except OSError as error:
        print(error)
"""
