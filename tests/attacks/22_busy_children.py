"""Starts as many busy children as it gets, each in a session of its own, while its cells sleep."""

ROW = 22
DAMAGE = ("processes",)
BEFORE = """
import os, time
ends = time.monotonic() + 8
n_sessions = 0
for _ in range(58):
    try:
        pid = os.fork()
    except OSError as error:
        print(error)
        break
    if pid == 0:
        os.setsid()
        while time.monotonic() < ends:
            pass
        os._exit(0)
    n_sessions += pid != 0 and os.getsid(pid) == pid
time.sleep(0.2)
print("children in sessions of their own:", n_sessions)
if os.fork() == 0:
    os._exit(os.setsid() != 0)
_, status = os.wait()
pid = os.fork()
if pid == 0:
    os.setsid()
    os._exit(os.getsid(0) == os.getpid())
if os.waitpid(pid, 0)[1]:
    print("!breach! a child has a session, and with it a job's share of the processors")
time.sleep(3)
"""
