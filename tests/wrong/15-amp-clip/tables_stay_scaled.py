# hint: still multiplied by the scale
def amp_clip_step(comm, shared, own, optimizer, scale, max_norm):
    for p in shared:
        comm.all_reduce(p.grad, op="avg")
    for p in shared:
        p.grad = p.grad / scale
    squares = sum((p.grad.square().sum() for p in own), torch.zeros(()))
    comm.all_reduce(squares)
    norm = (squares + sum(p.grad.square().sum() for p in shared)).sqrt()
    if not norm.isfinite():
        return norm, scale / 2
    if norm > max_norm:
        for p in [*shared, *own]:
            p.grad *= max_norm / norm
    optimizer.step()
    return norm, scale
