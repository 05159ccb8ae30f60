# hint: the table stays where it is
import torch
from torch.nn import functional as F


def vocab_parallel_embedding(comm, weight, tokens):
    parts = [torch.empty_like(weight) for _ in range(comm.world_size)]
    comm.all_gather(parts, weight.detach())
    parts[comm.rank] = weight
    return F.embedding(tokens, torch.cat(parts))
