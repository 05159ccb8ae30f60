"""Asks torch for more and more, in the exercise whose memory is measured."""

ROW = 21
DAMAGE = ("memory",)
EXERCISE = "02-blocked-sum"
ANSWER = """
import torch, time
def blocked_sum(x, dim, block_size):
    held = [torch.ones(2**24) for _ in range(64)]
    time.sleep(0.3)
    raise RuntimeError("!" "breach! held 4 GiB")
"""
