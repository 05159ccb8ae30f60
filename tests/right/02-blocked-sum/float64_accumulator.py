def blocked_sum(x, dim, block_size):
    dim = dim % x.ndim
    before = (slice(None),) * dim
    total = torch.zeros(x.shape[:dim] + x.shape[dim + 1 :], dtype=torch.float64, device=x.device)
    start = 0
    while start < x.shape[dim]:
        total += x[before + (slice(start, start + block_size),)].sum(dim, dtype=torch.float32)
        start += block_size
    return total.to(torch.float32)
