# hint: The requests are n / 32, rounded up
def load_cost(n: int, block: int, size: int, stride: int, offset: int, every: int) -> tuple[int, int]:
    requests = sectors = 0
    for first in range(0, n, block):
        for warp in range(first, first + block, 32):
            lanes = range(warp, min(warp + 32, first + block, n))
            touched = {(offset + i * stride * size) // 32 for i in lanes if i % every == 0}
            requests += bool(touched)
            sectors += len(touched)
    return -(-n // 32), sectors
