# All warps at once, as rows of a sorted tensor.
def load_cost(n, block, size, stride, offset, every):
    n_warps = -(-block // 32)
    thread = torch.arange(32 * n_warps)
    blocks = torch.arange(-(-n // block))[:, None]
    i = (blocks * block + thread).view(-1, 32)
    asks = ((thread < block).expand(len(blocks), -1).reshape(-1, 32)) & (i < n) & (i % every == 0)
    sector = torch.where(asks, (offset + i * stride * size) // 32, -1).sort(1).values
    new = (sector[:, 1:] != sector[:, :-1]).sum() + (sector[:, 0] >= 0).sum()
    return int(asks.any(1).sum()), int(new)
