"""A mapping with a million long keys, each with a number."""

ROW = 33
OUTCOMES = ("failed", "limit", "suspected")
ANSWER = "def rms(x, dim):\n    return {'k' * 30 + str(n): n for n in range(10**6)}"
