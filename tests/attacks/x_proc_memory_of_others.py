"""Reads the memory of the processes above it, by /proc, by system call and by tracing."""

STOCK = False
BEFORE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Vec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
for pid in {os.getppid(), 1} - {0, os.getpid()}:
    try:
        line = next(line for line in open(f"/proc/{pid}/maps") if "rw-p" in line)
        start = int(line.split("-")[0], 16)
        with open(f"/proc/{pid}/mem", "rb") as file:
            file.seek(start)
            print("!breach! read the memory of", pid, file.read(8))
    except OSError as error:
        print(pid, "mem", error)
    buffer = ctypes.create_string_buffer(8)
    if libc.ptrace(0x4206, pid, 0, 0) == 0:
        print("!breach! traces", pid)
        libc.ptrace(17, pid, 0, 0)
    else:
        print(pid, "ptrace", os.strerror(ctypes.get_errno()))
    descriptor = libc.syscall(434, pid, 0)
    if descriptor >= 0 and libc.syscall(438, descriptor, 0, 0) >= 0:
        print("!breach! took a descriptor from", pid)
"""
