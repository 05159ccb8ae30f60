"""One result that nests all sorts of things sixteen deep, itself among them."""

ROW = 33
HARMLESS = True
ANSWER = """
import torch
def rms(x, dim):
    loop = []
    loop.append(loop)
    deep = x
    for _ in range(200):
        deep = {"a": deep, 3: (deep,) if _ < 5 else None}
    return [loop, deep, 10**5000, float("nan"), "\\ud800", b"x" * 10**6, {"\\0": None}, ...]
"""
