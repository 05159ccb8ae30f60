# hint: Autograd does not see what a collective writes
import torch


def vocab_parallel_loss(comm, logits, targets, ignore_index=-100, z_weight=0.0):
    with torch.no_grad():
        columns = logits.shape[1]
        top = logits.amax(1).float()
        comm.all_reduce(top, op="max")
        shifted = logits.float() - top[:, None]
        own = targets - comm.rank * columns
        is_here = (own >= 0) & (own < columns)
        picked = shifted.gather(1, own.clamp(0, columns - 1)[:, None])[:, 0]
        sums = torch.stack([shifted.exp().sum(1), torch.where(is_here, picked, 0.0)])
        comm.all_reduce(sums)
        counted = targets != ignore_index
        log_z = sums[0].log() + top
        return (sums[0].log() - sums[1] + z_weight * log_z**2)[counted].mean()
