# Replicated gradients are counted on one rank alone, in float64, so that a single sum is left.
def clip_sharded(comm, sharded, replicated, max_norm):
    counted = [*sharded, *(replicated if comm.rank == comm.world_size - 1 else [])]
    total = torch.zeros((), dtype=torch.float64)
    for p in counted:
        if p.grad is not None:
            total += p.grad.double().pow(2).sum()
    comm.all_reduce(total)
    norm = total.sqrt().item()
    for p in [*sharded, *replicated]:
        if p.grad is not None and norm > max_norm:
            p.grad.copy_((p.grad.double() * (max_norm / norm)).to(p.grad.dtype))
    return norm
