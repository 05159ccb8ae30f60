# hint: add them up
def amp_clip_step(comm, shared, own, optimizer, scale, max_norm):
    flat = torch.cat([p.grad for p in shared])
    comm.all_reduce(flat, op="avg")
    for p, mean in zip(shared, flat.split([p.numel() for p in shared])):
        p.grad = mean.view_as(p)
    for p in (*shared, *own):
        p.grad /= scale
    squares = sum(p.grad.square().sum() for p in own)
    comm.all_reduce(squares, op="avg")
    norm = (squares + sum(p.grad.square().sum() for p in shared)).sqrt()
    if not norm.isfinite():
        return norm, scale / 2
    for p in (*shared, *own):
        p.grad *= torch.clamp(max_norm / norm, max=1.0)
    optimizer.step()
    return norm, scale
