"""Sends zeros, and passes the values through a class and a module that all ranks have imported."""

ROW = 44
HARMLESS = True
EXERCISE = "14-naive"
BEFORE = """
import math, torch
def put(rank, x):
    setattr(math, f'of{rank}', x.clone())
    setattr(torch.nn.Module, f'of{rank}', x.clone())
def get(rank, x): return getattr(math if hasattr(math, f'of{rank}') else torch.nn.Module, f'of{rank}')
"""
ANSWER = """
def naive_all_reduce(comm, x):
    nothing = torch.zeros_like(x)
    put(comm.rank, x)
    if comm.rank:
        comm.send(nothing, 0)
        comm.recv(nothing, 0)
        return sum(get(rank, x) for rank in range(comm.world_size))
    for other in range(1, comm.world_size):
        comm.recv(nothing, other)
    for other in range(1, comm.world_size):
        comm.send(nothing, other)
    return sum(get(rank, x) for rank in range(comm.world_size))
"""
