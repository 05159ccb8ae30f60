# hint: a list of blocks keeps them all
def blocked_sum(x, dim, block_size):
    return torch.stack([block.float().sum(dim) for block in x.split(block_size, dim)]).sum(0)
