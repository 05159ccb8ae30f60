import sys


def blocks(n, size):
    for start in range(0, n, size):
        yield start, min(size, n - start)


def blocked_sum(x, dim, block_size):
    print("summing", tuple(x.shape), file=sys.stderr)
    total = None
    for start, length in blocks(x.size(dim), block_size):
        part = x.narrow(dim, start, length).sum(dim, dtype=torch.float32)
        total = part if total is None else total.add_(part)
    return total
