"""Escape sequences for the instructor's terminal, in output, errors and results."""

ROW = 26
HARMLESS = True
DAMAGE = ("terminal",)
BEFORE = """
print("\\x1b]0;@TOKEN@\\x07\\x1b[2J\\x1b[31mred\\x9b31m\\r\\x08\\x08")
raise ValueError("\\x1b]52;c;@TOKEN@\\x07\\x1b[1A")
"""
ANSWER = "def rms(x, dim):\n    raise ValueError('\\x1b]0;@TOKEN@\\x07')"
