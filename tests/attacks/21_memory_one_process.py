"""Takes as much memory as it gets in one process, touching every page."""

ROW = 21
DAMAGE = ("memory",)
ANSWER = """
import mmap, time
def rms(x, dim):
    held = []
    while len(held) < 64:
        held.append(b"x" * 2**26)
    time.sleep(0.3)
    raise RuntimeError("!" "breach! held 4 GiB")
"""
