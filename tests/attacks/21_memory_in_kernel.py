"""Has the kernel hold memory for it: full pipes, socket buffers, System V segments, message queues."""

ROW = 21
DAMAGE = ("memory", "leftovers")
BEFORE = """
import ctypes, fcntl, os, socket
held, kept = 0, []
try:
    for _ in range(4000):
        read, write = os.pipe()
        kept += [read, write]
        os.set_blocking(write, False)
        try:
            fcntl.fcntl(write, 1031, 2**20)
        except OSError:
            pass
        while True:
            try:
                held += os.write(write, b"x" * 65536)
            except BlockingIOError:
                break
except OSError as error:
    print("pipes", error)
print("in pipes", held)
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
segments = 0
for number in range(8):
    segment = libc.shmget(@IPC_KEY@ + number * 0, 2**28, 0o1600)
    if segment < 0:
        print("shmget", os.strerror(ctypes.get_errno()))
        break
    address = libc.shmat(segment, None, 0)
    ctypes.memset(address, 1, 2**28)
    segments += 2**28
print("in segments", segments)
if held + segments > 2 * 2**30:
    print("!breach! the kernel held 2 GiB for it")
"""
