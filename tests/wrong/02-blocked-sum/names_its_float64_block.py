# hint: a block in float64 counts twice
def blocked_sum(x, dim, block_size):
    total = 0
    for b in x.split(block_size, dim):
        d = b.double()
        total = total + d.sum(dim)
    return total.float()
