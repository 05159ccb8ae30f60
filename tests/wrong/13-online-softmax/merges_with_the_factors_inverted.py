# hint: the wrong way round
def merge_stats(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """(top, total) of rows, from the pairs of two parts of these rows; all tensors (n_rows,), float32."""
    (top_a, total_a), (top_b, total_b) = first, second
    top = torch.maximum(top_a, top_b)
    base = torch.where(top == -torch.inf, 0.0, top)
    return top, total_a * torch.exp(base - top_a) + total_b * torch.exp(base - top_b)


def softmax_stats(blocks: Iterator[Tensor]) -> tuple[Tensor, Tensor]:
    """(top, total), (n_rows,) each and in float32, of rows that come in blocks (n_rows, some columns), in one pass."""
    stats = None
    for block in blocks:
        block = block.float()
        top = block.amax(1)
        base = torch.where(top == -torch.inf, 0.0, top)
        own = top, torch.exp(block - base[:, None]).sum(1)
        stats = own if stats is None else merge_stats(stats, own)
    return stats
