# hint: The summed axis is still there
def blocked_sum(x, dim, block_size):
    total = 0.0
    for block in torch.split(x, block_size, dim):
        total = total + block.float().sum(dim, keepdim=True)
    return total
