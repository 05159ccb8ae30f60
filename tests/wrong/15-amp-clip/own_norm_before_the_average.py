# hint: Each rank took the norm of its own gradients before the average
def amp_clip_step(comm, shared, own, optimizer, scale, max_norm):
    for p in (*shared, *own):
        p.grad /= scale
    norm = torch.nn.utils.get_total_norm([p.grad for p in (*shared, *own)])
    flat = torch.cat([p.grad for p in shared])
    comm.all_reduce(flat, op="avg")
    for p, mean in zip(shared, flat.split([p.numel() for p in shared])):
        p.grad = mean.view_as(p)
    finite = norm.isfinite().float()
    comm.all_reduce(finite, op="avg")
    if finite < 1:
        return norm, scale / 2
    for p in (*shared, *own):
        p.grad *= torch.clamp(max_norm / norm, max=1.0)
    optimizer.step()
    return norm, scale
