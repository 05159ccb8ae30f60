# sum of a generator
def blocked_sum(x, dim, block_size):
    return sum(block.sum(dim, dtype=torch.float32) for block in torch.split(x, block_size, dim))
