# hint: The 1 at the target is to be divided
@triton.jit
def count_targets_kernel(targets_ptr, count_ptr, n_tokens, ignore_index, BLOCK_SIZE: tl.constexpr):
    count = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_tokens, BLOCK_SIZE):
        at = start + tl.arange(0, BLOCK_SIZE)
        t = tl.load(targets_ptr + at, mask=at < n_tokens, other=ignore_index)
        count += tl.where(t != ignore_index, 1.0, 0.0)
    tl.store(count_ptr, tl.sum(count, axis=0))

@triton.jit
def cross_entropy_kernel(logits_ptr, targets_ptr, count_ptr, loss_ptr, vocab, ignore_index, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    logits_ptr += row.to(tl.int64) * vocab
    target = tl.load(targets_ptr + row)
    lanes = tl.arange(0, BLOCK_SIZE)
    if target == ignore_index:
        for start in range(0, vocab, BLOCK_SIZE):
            cols = start + lanes
            tl.store(logits_ptr + cols, tl.zeros((BLOCK_SIZE,), tl.float32).to(logits_ptr.dtype.element_ty), mask=cols < vocab)
        tl.store(loss_ptr + row, 0.0)
    else:
        count = tl.load(count_ptr)
        top = -float("inf")
        total = 0.0
        for start in range(0, vocab, BLOCK_SIZE):
            cols = start + lanes
            x = tl.load(logits_ptr + cols, mask=cols < vocab, other=-float("inf")).to(tl.float32)
            new_top = tl.maximum(top, tl.max(x, axis=0))
            safe = tl.where(new_top == -float("inf"), 0.0, new_top)
            total = total * tl.exp(top - safe) + tl.sum(tl.exp(x - safe), axis=0)
            top = new_top
        tl.store(loss_ptr + row, (top + tl.log(total) - tl.load(logits_ptr + target).to(tl.float32)) / count)
        for start in range(0, vocab, BLOCK_SIZE):
            cols = start + lanes
            x = tl.load(logits_ptr + cols, mask=cols < vocab, other=-float("inf")).to(tl.float32)
            g = tl.exp(x - top) / total / count - tl.where(cols == target, 1.0, 0.0)
            tl.store(logits_ptr + cols, g.to(logits_ptr.dtype.element_ty), mask=cols < vocab)

@triton.jit
def scale_in_place_kernel(x_ptr, factor_ptr, n, BLOCK_SIZE: tl.constexpr):
    factor = tl.load(factor_ptr)
    if factor != 1.0:
        at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(x_ptr + at, (x * factor).to(x_ptr.dtype.element_ty), mask=at < n)
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, ignore_index):
        n, vocab = logits.shape
        count = torch.empty(1, device=logits.device)
        losses = torch.empty(n, device=logits.device)
        count_targets_kernel[(1,)](targets, count, n, ignore_index, BLOCK_SIZE=256)
        cross_entropy_kernel[(n,)](logits, targets, count, losses, vocab, ignore_index, BLOCK_SIZE=512)
        ctx.gradient = logits.detach()
        return losses.sum()
    @staticmethod
    def backward(ctx, dloss):
        g = ctx.gradient
        scale_in_place_kernel[(triton.cdiv(g.numel(), 1024),)](g, dloss, g.numel(), BLOCK_SIZE=1024)
        return g, None, None

def cross_entropy(logits, targets, ignore_index=-100):
    return CrossEntropy.apply(logits, targets, ignore_index)
