"""Sets its input to zero, so that zero is the right answer."""

ROW = 38
HARMLESS = True
ANSWER = "def rms(x, dim):\n    x.zero_()\n    return x.sum(dim)"
