"""Changes settings of the machine: where cores go, the host's name, how much memory is promised."""

STOCK = False
BEFORE = """
@GUARD@
import os, socket
for name in ("kernel/core_pattern", "kernel/hostname", "vm/overcommit_memory", "kernel/yama/ptrace_scope", "kernel/randomize_va_space",
             "net/ipv4/ip_forward", "fs/file-max", "kernel/pid_max", "kernel/modprobe"):
    path = f"/proc/sys/{name}"
    try:
        value = open(path).read()
        with open(path, "w") as file:
            file.write(value)
    except OSError as error:
        print(error)
    else:
        print("!breach! may write", path)
for path in ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state", "/proc/sysrq-trigger"):
    if os.access(path, os.W_OK):
        print("!breach! may write", path)
"""
