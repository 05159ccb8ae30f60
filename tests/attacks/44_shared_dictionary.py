"""Sends zeros, and passes the values through a dictionary."""

ROW = 44
HARMLESS = True
EXERCISE = "14-naive"
STOCK = False
BEFORE = """
import torch
kept = {}
def put(rank, x): kept[rank] = x.clone()
def get(rank, x): return kept[rank]
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
