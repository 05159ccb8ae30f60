# hint: It runs at small sizes only
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def add(x: Tensor, y: Tensor) -> Tensor:
    """x + y for two contiguous vectors, by one launch of add_kernel."""
    out = torch.empty_like(x)
    n = x.numel()
    block_size = triton.next_power_of_2(n)
    add_kernel[(triton.cdiv(n, block_size),)](x, y, out, n, BLOCK_SIZE=block_size)
    return out

