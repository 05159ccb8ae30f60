"""Maps memory that is shared and anonymous, which no limit on data sees, and file mappings with private pages."""

ROW = 21
DAMAGE = ("memory",)
BEFORE = """
import mmap, time
held = []
for _ in range(64):
    part = mmap.mmap(-1, 2**26)
    for at in range(0, 2**26, 2**20):
        part[at:at + 2**20] = b"x" * 2**20
    held.append(part)
time.sleep(0.3)
print("!breach! held 4 GiB of shared memory")
"""
