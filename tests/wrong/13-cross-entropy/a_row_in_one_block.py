# hint: larger than all registers of a multiprocessor
# A row as a single block of many warps, read once.
@triton.jit
def count_targets_kernel(
    targets_ptr, count_ptr, n_tokens, ignore_index, BLOCK_SIZE: tl.constexpr
):
    found = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_tokens, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        targets = tl.load(targets_ptr + offs, mask=offs < n_tokens, other=ignore_index)
        found += tl.where(targets != ignore_index, 1.0, 0.0)
    tl.store(count_ptr, tl.sum(found, axis=0))


@triton.jit
def cross_entropy_kernel(
    logits_ptr, targets_ptr, count_ptr, loss_ptr, vocab, ignore_index, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0)
    # Rows times columns may be more than 2**31.
    logits_ptr += row.to(tl.int64) * vocab
    target = tl.load(targets_ptr + row)
    if target == ignore_index:
        for start in range(0, vocab, BLOCK_SIZE):
            cols = start + tl.arange(0, BLOCK_SIZE)
            tl.store(logits_ptr + cols, 0.0, mask=cols < vocab)
        tl.store(loss_ptr + row, 0.0)
    else:
        cols = tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits_ptr + cols, mask=cols < vocab, other=-float("inf")).to(tl.float32)
        x -= tl.max(x, axis=0)
        e = tl.exp(x)
        total = tl.sum(e, axis=0)
        count = tl.load(count_ptr)
        hot = cols == target
        tl.store(loss_ptr + row, (tl.log(total) - tl.sum(tl.where(hot, x, 0.0), axis=0)) / count)
        tl.store(logits_ptr + cols, (e / total - hot.to(tl.float32)) / count, mask=cols < vocab)


@triton.jit
def scale_in_place_kernel(x_ptr, factor_ptr, n, BLOCK_SIZE: tl.constexpr):
    factor = tl.load(factor_ptr)
    if factor != 1.0:
        offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
        tl.store(x_ptr + offs, x * factor, mask=offs < n)


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor, ignore_index: int) -> Tensor:
        """The mean loss; on the way, the logits become their own gradient."""
        n_tokens, vocab = logits.shape
        count, losses = logits.new_empty(1, dtype=torch.float32), logits.new_empty(n_tokens, dtype=torch.float32)
        count_targets_kernel[(1,)](targets, count, n_tokens, ignore_index, BLOCK_SIZE=1024)
        cross_entropy_kernel[(n_tokens,)](
            logits, targets, count, losses, vocab, ignore_index, BLOCK_SIZE=triton.next_power_of_2(vocab), num_warps=8
        )
        ctx.gradient = logits.detach()
        return losses.sum()

    @staticmethod
    def backward(ctx, dloss: Tensor) -> tuple:
        """What lies in the logits' memory, times dloss, and None for the rest."""
        gradient = ctx.gradient
        n, block_size = gradient.numel(), 2048
        scale_in_place_kernel[(triton.cdiv(n, block_size),)](
            gradient, dloss, n, BLOCK_SIZE=block_size
        )
        return gradient, None, None


def cross_entropy(logits: Tensor, targets: Tensor, ignore_index: int = -100) -> Tensor:
    """Mean cross-entropy of logits (n_tokens, vocab) in float32; their gradient takes their place."""
    return CrossEntropy.apply(logits, targets, ignore_index)
