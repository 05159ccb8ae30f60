"""Renames, removes and takes away the rights of what it can reach of the course."""

ROW = 16
DAMAGE = ("files",)
BEFORE = """
import os
deeds = (
    lambda: os.rename("@COURSE@/gradebook.db", "@COURSE@/gradebook.old"),
    lambda: os.unlink("@COURSE@/.grading/course.key"),
    lambda: os.chmod("@COURSE@", 0),
    lambda: os.chown("@COURSE@", 12345, 12345),
    lambda: os.symlink("/etc/passwd", "@COURSE@/@TOKEN@"),
    lambda: os.link("@COURSE@/gradebook.db", "/tmp/@TOKEN@"),
    lambda: os.utime("@COURSE@/source"),
)
for deed in deeds:
    try:
        deed()
    except OSError as error:
        print(error)
    else:
        print("!breach! changed the course")
"""
