"""Returns a tensor whose values are computed only where somebody looks, and differently for each look."""

ROW = 37
HARMLESS = True
ANSWER = """
import torch
from torch.utils._pytree import tree_map

class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, make, like):
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)
    def __init__(self, make, like):
        self.make = make
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = tree_map(lambda each: each.make() if isinstance(each, Lazy) else each, args)
        return func(*args, **(kwargs or {}))

def rms(x, dim):
    like = x.float().mean(dim).to(x.dtype)
    return Lazy(lambda: like, like)
"""
