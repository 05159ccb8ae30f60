# hint: The logits stay at home
import torch
from torch.nn import functional as F


def vocab_parallel_loss(comm, logits, targets, ignore_index=-100, z_weight=0.0):
    parts = [torch.empty_like(logits) for _ in range(comm.world_size)]
    comm.all_gather(parts, logits.detach())
    parts[comm.rank] = logits
    whole = torch.cat(parts, 1).float()
    counted = targets != ignore_index
    z_loss = whole.logsumexp(1)[counted].square().mean()
    return F.cross_entropy(whole, targets, ignore_index=ignore_index) + z_weight * z_loss
