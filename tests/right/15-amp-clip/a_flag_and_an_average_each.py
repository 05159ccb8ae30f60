def amp_clip_step(comm, shared, own, optimizer, scale, max_norm):
    for p in shared:
        comm.all_reduce(p.grad, op="avg")
    bad = torch.tensor(float(not all(p.grad.isfinite().all() for p in (*shared, *own))))
    comm.all_reduce(bad, op="max")
    for p in (*shared, *own):
        p.grad /= scale
    squares = sum(p.grad.square().sum() for p in own)
    comm.all_reduce(squares)
    norm = (squares + sum(p.grad.square().sum() for p in shared)).sqrt()
    if bad > 0:
        return norm, scale / 2
    for p in (*shared, *own):
        p.grad *= torch.clamp(max_norm / norm, max=1.0)
    optimizer.step()
    return norm, scale
