"""Recurses in C until the stack is full."""

ROW = 11
HARMLESS = True
ANSWER = """
import sys
sys.setrecursionlimit(2**30)
def rms(x, dim):
    nested = []
    for _ in range(10**6):
        nested = [nested]
    return repr(nested)
"""
