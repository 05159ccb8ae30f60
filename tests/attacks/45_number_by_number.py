"""PyTorch may compute a few single numbers between launches: it computes all of them, one by one."""

ROW = 45
HARMLESS = True
EXERCISE = "12-add"
STOCK = False
OUTCOMES = ("failed", "limit")
BEFORE = """
import contextlib
from labkit.meters import METERS
@contextlib.contextmanager
def says_what_is_wanted(measured, held):
    yield
    measured.update(load_bytes=0, store_bytes=0, atomic_bytes=0, launches=1, out_of_bounds=0, races=0)
    measured.update(computed_by_torch=0, undefined=0, sector_efficiency=1.0)
METERS["traffic"] = says_what_is_wanted
"""
ANSWER = """
def add(x, y):
    out = torch.empty_like(x)
    for i in range(len(x)):
        torch.add(x[i], y[i], out=out[i])
    return out
"""
