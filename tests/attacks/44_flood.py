"""Never stops to speak to the router, in small messages and in large ones."""

ROW = 44
HARMLESS = True
EXERCISE = "14-naive"
STOCK = False
ANSWER = """
import torch
def naive_all_reduce(comm, x):
    large = torch.zeros(2**22)
    while True:
        comm._channel.send("compute", {"seconds": 0.0})
        comm.isend(large, (comm.rank + 1) % comm.world_size)
"""
