"""Never returns."""

ROW = 20
OUTCOMES = ("limit",)
ANSWER = "def rms(x, dim):\n    while True:\n        pass"
WITHIN_S = 14.0
