"""Sends far too much, and says of itself that it sent nothing."""

ROW = 44
HARMLESS = True
EXERCISE = "14-naive"
STOCK = False
BEFORE = """
import torch
from labkit.stage import Stage
NOTHING = dict.fromkeys(("bytes_sent", "bytes_total", "messages", "seconds", "rounds"), 0.0)
Stage.__post_init__ = lambda stage: stage.measured.update(NOTHING)
"""
ANSWER = """
def naive_all_reduce(comm, x):
    parts = [torch.empty_like(x) for _ in range(comm.world_size)]
    for _ in range(10):
        comm.all_gather(parts, x)
    return sum(parts)
"""
