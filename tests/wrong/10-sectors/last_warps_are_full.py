# hint: although the block ends before
def load_cost(n, block, size, stride, offset, every):
    requests = sectors = 0
    for first in range(0, n, block):
        for warp in range(first, first + block, 32):
            lanes = range(warp, min(warp + 32, n))
            touched = {(offset + i * stride * size) // 32 for i in lanes if i % every == 0}
            requests += bool(touched)
            sectors += len(touched)
    return requests, sectors
