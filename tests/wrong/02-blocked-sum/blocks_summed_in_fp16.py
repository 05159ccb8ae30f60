# hint: Each block's sum was rounded to float16
def blocked_sum(x, dim, block_size):
    total = torch.zeros_like(x.select(dim, 0), dtype=torch.float32)
    for block in x.split(block_size, dim):
        total += block.sum(dim)
    return total
