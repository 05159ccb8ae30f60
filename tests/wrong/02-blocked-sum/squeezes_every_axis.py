# hint: squeeze(dim) only that one
def blocked_sum(x, dim, block_size):
    total = 0.0
    for block in x.split(block_size, dim):
        total = total + block.float().sum(dim, keepdim=True)
    return total.squeeze()
