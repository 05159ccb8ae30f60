"""Leaves a note in System V objects, POSIX queues and keyrings."""

TWICE = True
DAMAGE = ("leftovers",)
BEFORE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, make in (("segment", lambda flags: libc.shmget(@IPC_KEY@, 4096, flags)),
                   ("semaphore", lambda flags: libc.semget(@IPC_KEY@, 1, flags)),
                   ("queue", lambda flags: libc.msgget(@IPC_KEY@, flags))):
    if make(0o666) >= 0:
        print("!breach! found a", name)
    elif make(0o1666) < 0:
        print(name, os.strerror(ctypes.get_errno()))
queue = libc.syscall(240, b"@TOKEN@", os.O_RDWR, 0o666, None)
if queue >= 0:
    print("!breach! found a message queue")
elif libc.syscall(240, b"@TOKEN@", os.O_RDWR | os.O_CREAT, 0o666, None) < 0:
    print("mq_open", os.strerror(ctypes.get_errno()))
for ring in (-3, -4, -5):
    if libc.syscall(250, 10, ring, b"user", b"@TOKEN@", 0) >= 0:
        print("!breach! found a key in ring", ring)
    elif libc.syscall(248, b"user", b"@TOKEN@", b"x", 1, ring) < 0:
        print("add_key", ring, os.strerror(ctypes.get_errno()))
"""
