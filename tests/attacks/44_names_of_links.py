"""Sends zeros, and passes the values as where symbolic links lead."""

ROW = 44
EXERCISE = "14-naive"
STOCK = False
BEFORE = """
import os, torch
def put(rank, x):
    name = f'/tmp/@TOKEN@-{rank}'
    if os.path.lexists(name): os.unlink(name)
    os.symlink('_' + x.reshape(-1).view(torch.uint8).numpy().tobytes().hex(), name)
def get(rank, x):
    data = bytearray.fromhex(os.readlink(f'/tmp/@TOKEN@-{rank}')[1:])
    return torch.frombuffer(data, dtype=x.dtype).view(x.shape) if data else torch.zeros_like(x)
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
