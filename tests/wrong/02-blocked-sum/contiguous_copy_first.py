# hint: More was held at once than two blocks
def blocked_sum(x, dim, block_size):
    x = x.movedim(dim, 0).clone(memory_format=torch.contiguous_format)
    total = torch.zeros(x.shape[1:])
    for start in range(0, len(x), block_size):
        total += x[start : start + block_size].float().sum(0)
    return total
