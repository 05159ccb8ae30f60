def amp_clip_step(comm, shared, own, optimizer, scale, max_norm):
    mine = sum((p.grad / scale).square().sum() for p in own)
    flat = torch.cat([*(p.grad / comm.world_size for p in shared), mine.reshape(1)])
    comm.all_reduce(flat)
    flat, squares = flat[:-1], flat[-1]
    for p, mean in zip(shared, flat.split([p.numel() for p in shared])):
        p.grad = mean.view_as(p)
    for p in (*shared, *own):
        p.grad /= scale
    norm = (squares + sum(p.grad.square().sum() for p in shared)).sqrt()
    if not norm.isfinite():
        return norm, scale / 2
    for p in (*shared, *own):
        p.grad *= torch.clamp(max_norm / norm, max=1.0)
    optimizer.step()
    return norm, scale
