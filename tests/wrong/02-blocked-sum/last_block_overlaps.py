# hint: Some slices were added twice
def blocked_sum(x, dim, block_size):
    n = x.shape[dim]
    size = min(block_size, n)
    total = torch.zeros_like(x.select(dim, 0), dtype=torch.float32)
    for start in range(0, n, size):
        total += x.narrow(dim, min(start, n - size), size).float().sum(dim)
    return total
