"""Makes every comparison of torch and numpy say "equal"."""

ROW = 1
HARMLESS = True
BEFORE = """
import numpy, torch
torch.allclose = torch.equal = torch.isclose = lambda *args, **kwargs: True
torch.testing.assert_close = lambda *args, **kwargs: None
numpy.allclose = numpy.array_equal = lambda *args, **kwargs: True
numpy.testing.assert_allclose = lambda *args, **kwargs: None
"""
