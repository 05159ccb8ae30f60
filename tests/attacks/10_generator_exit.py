"""Raises what is no ordinary exception."""

ROW = 10
HARMLESS = True
ANSWER = """
class Odd(BaseException):
    def __str__(self): raise Odd
    __repr__ = __str__

def rms(x, dim):
    raise Odd
"""
