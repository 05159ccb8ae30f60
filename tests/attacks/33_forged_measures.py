"""Sends the true result with measurements that are no numbers, negative, or not there."""

ROW = 33
EXERCISE = "02-blocked-sum"
HARMLESS = True
BEFORE = """
import labkit.stage
for forged in (float("nan"), -1.0, True, "0", None):
    pass
class Forged(dict):
    def __setitem__(self, name, value): super().__setitem__(name, float("nan"))
    def get(self, name, default=None): return -1.0
    def items(self): return iter([("peak_bytes", float("nan")), ("dispatches", -5), ("x" * 10**6, 1.0)])
original = labkit.stage.Stage.__init__
def init(self, *args, **kwargs):
    original(self, *args, **kwargs)
    try:
        object.__setattr__(self, "measured", Forged())
    except Exception:
        pass
labkit.stage.Stage.__init__ = init
"""
