# hint: x.chunk(k, dim) cuts k chunks
def blocked_sum(x, dim, block_size):
    total = torch.zeros_like(x.select(dim, 0), dtype=torch.float32)
    for block in x.chunk(block_size, dim):
        total += block.float().sum(dim)
    return total
