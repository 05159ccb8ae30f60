"""Stays below a process's limit, in twenty-four processes at once."""

ROW = 21
DAMAGE = ("memory",)
BEFORE = """
import os, time
read, write = os.pipe()
for _ in range(24):
    if os.fork() == 0:
        try:
            held = b"x" * (250 * 2**20)
            os.write(write, b"x")
            time.sleep(6)
        finally:
            os._exit(0)
os.set_blocking(read, False)
ends = time.monotonic() + 6
count = 0
while time.monotonic() < ends and count < 24:
    time.sleep(0.1)
    try:
        count += len(os.read(read, 100))
    except BlockingIOError:
        pass
print(count, "processes hold 250 MiB each")
# Their memory is looked at from time to time: a quarter beyond the limit is no cap any more.
if count >= 21:
    print("!breach! held 5 GiB in many processes")
"""
