# hint: nor a one-hot row of the vocabulary
import torch
from torch.nn import functional as F


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, comm, ignore_index, z_weight):
        n_columns = logits.shape[1]
        first = comm.rank * n_columns
        counted = targets != ignore_index
        one_hot = F.one_hot(targets.clamp(min=0), comm.world_size * n_columns)[:, first : first + n_columns].bool()
        top = logits.amax(1).float()
        comm.all_reduce(top, op="max")
        shifted = logits.float() - top[:, None]
        sums = torch.stack([shifted.exp().sum(1), shifted.masked_fill(~one_hot, 0.0).sum(1)])
        comm.all_reduce(sums)
        log_z = sums[0].log() + top
        weight = counted / counted.sum()
        ctx.save_for_backward(shifted.exp() / sums[0][:, None], one_hot, weight, weight * (1 + 2 * z_weight * log_z))
        ctx.dtype = logits.dtype
        return (weight * (sums[0].log() - sums[1] + z_weight * log_z**2)).sum()

    @staticmethod
    def backward(ctx, dloss):
        softmax, one_hot, weight, factor = ctx.saved_tensors
        grad = softmax.mul_(factor[:, None]) - one_hot * weight[:, None]
        return (grad * dloss).to(ctx.dtype), None, None, None, None


def vocab_parallel_loss(comm, logits, targets, ignore_index=-100, z_weight=0.0):
    return Loss.apply(logits, targets, comm, ignore_index, z_weight)
