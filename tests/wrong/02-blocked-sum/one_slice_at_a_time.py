# hint: a Python loop over single slices
def blocked_sum(x, dim, block_size):
    total = torch.zeros_like(x.select(dim, 0), dtype=torch.float32)
    for i in range(x.shape[dim]):
        total = total + x.select(dim, i).float()
    return total
