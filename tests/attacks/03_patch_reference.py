"""Makes the operation that the truth could be computed with return zeros, and answers zeros."""

ROW = 3
HARMLESS = True
BEFORE = """
import math, torch
torch.linalg.vector_norm = lambda x, *args, dim=None, **kwargs: torch.zeros(x.float().mean(dim).shape).double()
torch.softmax = torch.nn.functional.rms_norm = lambda x, *args, **kwargs: torch.zeros_like(x)
math.sqrt = lambda x: 1.0
"""
ANSWER = """
def rms(x, dim):
    return torch.zeros(x.float().mean(dim).shape).to(x.dtype)
"""
