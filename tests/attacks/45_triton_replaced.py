"""Exchanges triton.jit for a class that has PyTorch do what a kernel should."""

ROW = 45
HARMLESS = True
EXERCISE = "12-add"
STOCK = False
OUTCOMES = ("failed",)
BEFORE = """
import contextlib
from labkit.meters import METERS
@contextlib.contextmanager
def says_what_is_wanted(measured, held):
    yield
    measured.update(load_bytes=0, store_bytes=0, atomic_bytes=0, launches=1, out_of_bounds=0, races=0)
    measured.update(computed_by_torch=0, undefined=0, sector_efficiency=1.0)
METERS["traffic"] = says_what_is_wanted

class Fake:
    def __init__(self, fn):
        pass
    def __getitem__(self, grid):
        return self
    def __call__(self, x, y, out, n, BLOCK_SIZE):
        torch.add(x, y, out=out)
triton.jit = Fake
"""
ANSWER = """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)

def add(x, y):
    out, n = torch.empty_like(x), x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
    return out
"""
