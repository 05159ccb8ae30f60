"""Names a process after itself and looks through all processes for one of that name."""

TWICE = True
DAMAGE = ("processes",)
BEFORE = """
import ctypes, glob, os, time
name = b"etlnote" + b"@TOKEN@"[-4:]
seen = 0
for path in glob.glob("/proc/[0-9]*/comm"):
    try:
        seen += 1
        if open(path, "rb").read().strip() == name:
            print("!breach! found a process that was left, among", seen)
    except OSError:
        pass
if os.fork() == 0:
    os.setsid()
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    time.sleep(40)
    os._exit(0)
"""
