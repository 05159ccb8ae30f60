# hint: The gradients of the own tables were averaged
def amp_clip_step(comm, shared, own, optimizer, scale, max_norm):
    for p in [*shared, *own]:
        comm.all_reduce(p.grad, op="avg")
    for p in [*shared, *own]:
        p.grad.div_(scale)
    mine = torch.zeros(1)
    for p in own:
        mine += (p.grad ** 2).sum()
    comm.all_reduce(mine, op="sum")
    total = mine[0] + sum((p.grad ** 2).sum() for p in shared)
    norm = total.sqrt()
    if not torch.isfinite(norm):
        return norm, scale / 2
    if norm > max_norm:
        for p in [*shared, *own]:
            p.grad.mul_(max_norm / norm)
    optimizer.step()
    return norm, scale
