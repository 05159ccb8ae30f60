def blocked_sum(x, dim, block_size):
    total = torch.zeros_like(x.select(dim, 0), dtype=torch.float64)
    for b in x.split(block_size, dim):
        total = total + b.double().sum(dim)
    return total.float()
