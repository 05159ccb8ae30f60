# walks along a moved axis
def blocked_sum(x, dim, block_size):
    y = x.movedim(dim, 0)
    total = torch.zeros(y.shape[1:])
    for i in range(0, len(y), block_size):
        total = total + y[i : i + block_size].float().sum(0)
    return total
