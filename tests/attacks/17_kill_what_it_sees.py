"""Looks for the grader among the processes, and kills it."""

ROW = 17
DAMAGE = ("grader",)
BEFORE = """
import glob, os, signal
for path in glob.glob("/proc/[0-9]*/cmdline"):
    pid = int(path.split("/")[2])
    try:
        command = open(path, "rb").read().replace(b"\\0", b" ").decode(errors="replace")
        if pid in (os.getpid(), 1) or "python" not in command:
            continue
        os.kill(pid, 0)
    except OSError:
        continue
    if "@COURSE@" in command or "grading" in command:
        print("!breach! could signal", pid, command[:100])
"""
