# hint: More was held at once than two blocks
def blocked_sum(x, dim, block_size):
    x = x.float()
    total = 0
    for block in x.split(block_size, dim):
        total = total + block.sum(dim)
    return total
