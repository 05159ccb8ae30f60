"""Launches a kernel whose text no cell holds, so that there is nothing to look at."""

ROW = 45
HARMLESS = True
EXERCISE = "12-add"
STOCK = False
OUTCOMES = ("failed",)
ANSWER = """
import linecache
TEXT = '''
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)
'''
linecache.cache["<nowhere>"] = (len(TEXT), None, TEXT.splitlines(keepends=True), "<nowhere>")
exec(compile(TEXT, "<nowhere>", "exec"))


def add(x, y):
    out, n = torch.empty_like(x), x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
    return out
"""
