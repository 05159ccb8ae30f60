def blocked_sum(x, dim, block_size):
    total = 0
    for b in x.split(block_size, dim):
        c = b.float()
        total = total + c.sum(dim)
    return total
