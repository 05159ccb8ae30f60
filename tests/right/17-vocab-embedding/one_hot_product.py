# A product with one-hot rows: those of other ranks' tokens are 0 by themselves. A hook takes the place of a Function.
import torch


def vocab_parallel_embedding(comm, weight, tokens):
    first = comm.rank * len(weight)
    rows = torch.arange(first, first + len(weight))
    mine = (tokens[..., None] == rows).to(weight.dtype) @ weight
    with torch.no_grad():
        others = mine.detach().clone()
        comm.all_reduce(others)
        others -= mine
    return mine + others
