"""Says 60 MB in an exception, in a repr and in a warning."""

ROW = 24
HARMLESS = True
BEFORE = """
import warnings
class Long:
    def __repr__(self): return "r" * 60_000_000
warnings.warn("w" * 60_000_000)
display(Long())
Long()
raise ValueError("e" * 60_000_000)
"""
ANSWER = "def rms(x, dim):\n    raise ValueError('e' * 60_000_000)"
