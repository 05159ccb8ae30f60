"""Honest work that asks PyTorch for four threads, before its answer and in it, where memory is read from outside."""

ROW = 31
HARMLESS = True
STOCK = False
EXERCISE = "02-blocked-sum"
EARNS = LEAST = 1.0
OUTCOMES = ("passed",)
BEFORE = """
import torch
torch.set_num_threads(4)
torch.ones(1000, 1000) @ torch.ones(1000, 1000)
"""
ANSWER = """
def blocked_sum(x, dim, block_size):
    torch.set_num_threads(4)
    dim = dim % x.ndim
    before = (slice(None),) * dim
    total = torch.zeros(x.shape[:dim] + x.shape[dim + 1 :], dtype=torch.float64, device=x.device)
    start = 0
    while start < x.shape[dim]:
        total += x[before + (slice(start, start + block_size),)].sum(dim, dtype=torch.float32)
        start += block_size
    return total.to(torch.float32)
"""
