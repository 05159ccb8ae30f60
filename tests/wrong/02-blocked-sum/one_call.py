# hint: The whole tensor went into one call
def blocked_sum(x, dim, block_size):
    return x.sum(dim, dtype=torch.float32)
