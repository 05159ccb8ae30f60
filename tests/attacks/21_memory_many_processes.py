"""Stays below a process's limit, in sixteen processes at once."""

ROW = 21
DAMAGE = ("memory",)
BEFORE = """
import os, time
read, write = os.pipe()
for _ in range(16):
    if os.fork() == 0:
        try:
            held = b"x" * (300 * 2**20)
            os.write(write, b"x")
            time.sleep(6)
        finally:
            os._exit(0)
os.set_blocking(read, False)
ends = time.monotonic() + 6
count = 0
while time.monotonic() < ends and count < 16:
    time.sleep(0.1)
    try:
        count += len(os.read(read, 100))
    except BlockingIOError:
        pass
print(count, "processes hold 300 MiB each")
if count >= 14:
    print("!breach! held 4 GiB in many processes")
"""
