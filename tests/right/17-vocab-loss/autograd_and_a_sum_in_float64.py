# Three calls, and autograd with one small function: a sum over ranks whose gradient is handed on as it is.
import torch


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, comm):
        total = x.double()
        comm.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad.float(), None


def vocab_parallel_loss(comm, logits, targets, ignore_index=-100, z_weight=0.0):
    columns = logits.shape[1]
    top = logits.detach().amax(1).float()
    comm.all_reduce(top, op="max")
    shifted = logits.float() - top[:, None]
    total = Sum.apply(shifted.exp().sum(1), comm)
    rows = ((targets // columns == comm.rank) & (targets >= 0)).nonzero()[:, 0]
    picked = torch.zeros(len(targets)).index_put((rows,), shifted[rows, targets[rows] % columns])
    picked = Sum.apply(picked, comm)
    log_z = total.log() + top
    return (total.log() - picked + z_weight * log_z**2)[targets != ignore_index].mean().float()
