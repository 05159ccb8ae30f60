"""The same by the bare system call, each process in a group and session of its own, from a cell."""

ROW = 22
DAMAGE = ("processes", "crowd")
BEFORE = """
import ctypes, os, time
libc = ctypes.CDLL(None)
ends, depth = time.monotonic() + 12, 0
home = os.getpid()
while time.monotonic() < ends and depth < 11:
    pid = libc.syscall(56, 17, 0, 0, 0, 0)
    if pid == 0:
        libc.setsid()
        depth += 1
    elif pid < 0:
        time.sleep(0.01)
    else:
        depth += 1
    if os.getpid() == home and depth >= 11:
        break
if os.getpid() != home:
    time.sleep(max(ends - time.monotonic(), 0))
    os._exit(0)
"""
