"""Hands over a record in which PyTorch may add the inputs up, as if kernels had stored them."""

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

from labkit.meters.launch_log import LaunchLog
as_it_was = LaunchLog.as_tree
def forged(self, outputs):
    told = as_it_was(self, outputs)
    if outputs:
        change(told, outputs)
    return told
LaunchLog.as_tree = forged

def change(told, outputs):
    to = told["outputs"]["out"]
    sides = [{"tensor": {**to, "storage": number, "offset": 0}} for number in (0, 1)]
    told["entries"] = [{"do": "add", "to": to, "left": sides[0], "right": sides[1], "times": 1, "name": "add"}]
"""
ANSWER = """
def add(x, y):
    return x + y
"""
