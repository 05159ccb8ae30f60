"""Locks files that all submissions read, in a process that stays, and looks whether they are locked."""

TWICE = True
DAMAGE = ("processes",)
BEFORE = """
import fcntl, os, time, labkit, torch
kept = []
for path in (torch.__file__, labkit.__file__, os.__file__, "/etc/passwd", "/dev/null", "/"):
    try:
        file = os.open(path, os.O_RDONLY)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        kept.append(file)
    except BlockingIOError:
        print("!breach! somebody holds", path)
    except OSError as error:
        print(path, error)
if os.fork() == 0:
    os.setsid()
    time.sleep(40)
    os._exit(0)
"""
