@triton.jit
def kernel(a, b, c, n, n_blocks, B: tl.constexpr):
    for i in range(tl.program_id(0), n_blocks, tl.num_programs(0)):
        here = i * B + tl.arange(0, B)
        tl.store(c + here, tl.load(a + here, here < n, 0) + tl.load(b + here, here < n, 0), here < n)


def add(x, y):
    print("adding", x.shape)
    n_blocks = -(-len(x) // 512)
    out = x.new_empty(len(x))
    kernel[min(n_blocks, 432), 1, 1](x, y, out, len(x), n_blocks, 512)
    return out
