"""Becomes another user, raises its limits and its priority, and counts its capabilities."""

STOCK = False
BEFORE = """
import ctypes, os, resource
def no_capability():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    for name in ("CapEff", "CapPrm", "CapAmb", "CapInh"):
        if int(lines[name], 16):
            print("!breach! has capabilities:", name, lines[name].strip())
    if lines["NoNewPrivs"].strip() != "1":
        print("!breach! may gain privileges")
    if lines["Seccomp"].strip() != "2":
        print("!breach! no filter of system calls")
def set_uid():
    os.setuid(0)
    raise_if("became root", os.getuid() == 0)
def set_gid():
    os.setgid(0)
    print("!breach! joined group 0")
def groups():
    os.setgroups([0, 42])
    print("!breach! chose its groups")
def limits():
    for name in ("RLIMIT_NPROC", "RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_CPU", "RLIMIT_CORE"):
        soft, hard = resource.getrlimit(getattr(resource, name))
        if hard == resource.RLIM_INFINITY:
            if name not in ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_CPU"):
                print("!breach! no limit", name)
            continue
        try:
            resource.setrlimit(getattr(resource, name), (hard + 1, hard + 1))
            print("!breach! raised", name)
        except (OSError, ValueError):
            pass
def nice():
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    print("!breach! raised its priority")
def realtime():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    print("!breach! real-time priority")
def raise_if(what, holds):
    if holds and open("/proc/self/uid_map").read().split()[1] == "0":
        print("!breach!", what)
for deed in (no_capability, set_uid, set_gid, groups, limits, nice, realtime):
    try:
        deed()
    except (OSError, ValueError) as error:
        print(deed.__name__, error)
"""
