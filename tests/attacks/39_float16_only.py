"""Squares in the input's own type, which is right for most values and cheaper."""

ROW = 39
HARMLESS = True
ANSWER = "def rms(x, dim):\n    return x.square().mean(dim).sqrt()"
