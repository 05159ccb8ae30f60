# hint: Each rank took the norm of its own table alone
def amp_clip_step(comm, shared, own, optimizer, scale, max_norm):
    for p in shared:
        comm.all_reduce(p.grad, op="avg")
    for p in (*shared, *own):
        p.grad = p.grad / scale
    norm = torch.nn.utils.get_total_norm([p.grad for p in own])
    finite = torch.tensor(float(all(p.grad.isfinite().all() for p in (*shared, *own))))
    comm.all_reduce(finite, op="avg")
    if finite < 1:
        return norm, scale / 2
    for p in (*shared, *own):
        p.grad *= torch.clamp(max_norm / norm, max=1.0)
    optimizer.step()
    return norm, scale
