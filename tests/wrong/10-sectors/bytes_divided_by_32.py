# hint: are the least there could be
def load_cost(n: int, block: int, size: int, stride: int, offset: int, every: int) -> tuple[int, int]:
    requests = sectors = 0
    for first in range(0, n, block):
        for warp in range(first, first + block, 32):
            lanes = range(warp, min(warp + 32, first + block, n))
            touched = {(offset + i * stride * size) // 32 for i in lanes if i % every == 0}
            requests += bool(touched)
            sectors += len(touched)
    return requests, -(-len(range(0, n, every)) * size // 32)
