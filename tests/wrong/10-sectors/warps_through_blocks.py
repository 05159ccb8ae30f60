# hint: A warp never holds threads of two blocks
def load_cost(n: int, block: int, size: int, stride: int, offset: int, every: int) -> tuple[int, int]:
    requests = sectors = 0
    for first in [0]:
        for warp in range(0, n, 32):
            lanes = range(warp, min(warp + 32, n))
            touched = {(offset + i * stride * size) // 32 for i in lanes if i % every == 0}
            requests += bool(touched)
            sectors += len(touched)
    return requests, sectors
