# A dictionary from each warp to the sectors that its lanes have asked for.
def load_cost(n, block, size, stride, offset, every):
    asked = {}
    for i in range(0, n, every):
        warp = (i // block, i % block // 32)
        first_byte = offset + i * stride * size
        for byte in range(first_byte, first_byte + size):
            asked.setdefault(warp, set()).add(byte // 32)
    return [len(asked), sum(map(len, asked.values()))]
