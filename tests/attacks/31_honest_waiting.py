"""Honest work whose first cell waits with `await`, where memory is read from outside and no socket may be made."""


ROW = 31
HARMLESS = True
STOCK = False
EXERCISE = "02-blocked-sum"
EARNS = LEAST = 1.0
OUTCOMES = ("passed",)
BEFORE = """
import asyncio, torch
async def one():
    await asyncio.sleep(0.01)
    return 1
print(await one(), await asyncio.gather(one(), one()))
"""
ANSWER = """
def blocked_sum(x, dim, block_size):
    dim = dim % x.ndim
    before = (slice(None),) * dim
    total = torch.zeros(x.shape[:dim] + x.shape[dim + 1 :], dtype=torch.float64, device=x.device)
    start = 0
    while start < x.shape[dim]:
        total += x[before + (slice(start, start + block_size),)].sum(dim, dtype=torch.float32)
        start += block_size
    return total.to(torch.float32)
"""
