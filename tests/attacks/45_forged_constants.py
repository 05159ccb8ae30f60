"""Hands over a record in which no kernel runs and the result of PyTorch is a list of constants."""

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
    to, values = told["outputs"]["out"], outputs["out"].tolist()
    told["entries"] = [
        {"do": "constants", "to": {**to, "offset": i, "shape": [len(values[i : i + 64])]}, "values": values[i : i + 64]}
        for i in range(0, len(values), 64)
    ]
"""
ANSWER = """
def add(x, y):
    return x + y
"""
