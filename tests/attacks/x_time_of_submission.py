"""A time of submission from before the course, from the far future, in a file of odd contents."""

HARMLESS = True
OUTCOMES = ("failed", "unreadable")


def folder(path, places):
    (path / "timestamp.txt").write_text("9999-12-31 23:59:59.999999 +23:59\n\u202e\x1b[2J")
