# hint: The last block is missing
def blocked_sum(x, dim, block_size):
    total = torch.zeros_like(x.select(dim, 0), dtype=torch.float32)
    for i in range(x.shape[dim] // block_size):
        total += x.narrow(dim, i * block_size, block_size).float().sum(dim)
    return total
