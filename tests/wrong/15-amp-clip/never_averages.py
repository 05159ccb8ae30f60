# hint: of every rank's own version of the shared gradient
def amp_clip_step(comm, shared, own, optimizer, scale, max_norm):
    for p in (*shared, *own):
        p.grad /= scale
    squares = sum(p.grad.square().sum() for p in own)
    comm.all_reduce(squares)
    norm = (squares + sum(p.grad.square().sum() for p in shared)).sqrt()
    if not norm.isfinite():
        return norm, scale / 2
    for p in (*shared, *own):
        p.grad *= torch.clamp(max_norm / norm, max=1.0)
    optimizer.step()
    return norm, scale
