"""Looks for the other ranks among the processes, to signal them and to read their memory."""

ROW = 44
EXERCISE = "14-naive"
STOCK = False
BEFORE = """
import os, torch
me = os.getpid()
def put(rank, x):
    import gc
    others = [int(name) for name in os.listdir('/proc') if name.isdigit() and int(name) not in (1, me)]
    for pid in others:
        os.kill(pid, 0)
        open(f'/proc/{pid}/mem', 'rb').close()
        raise RuntimeError(f'!breach! it reached process {pid}')
def get(rank, x): return torch.zeros_like(x)
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
