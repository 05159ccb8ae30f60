"""A result whose type and text are HTML, shown where a tensor was expected."""

ROW = 26
HARMLESS = True
DAMAGE = ("page",)
ANSWER = """
Evil = type("<img src=x onerror=alert('@TOKEN@')>", (), {"__repr__": lambda self: "<script>alert('@TOKEN@')</script>"})
def rms(x, dim):
    return Evil()
"""
