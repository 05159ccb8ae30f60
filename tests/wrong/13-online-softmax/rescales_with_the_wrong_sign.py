# hint: the wrong way round
def merge_stats(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """(top, total) of rows, from the pairs of two parts of these rows; all tensors (n_rows,), float32."""
    (top_a, total_a), (top_b, total_b) = first, second
    top = torch.maximum(top_a, top_b)
    base = torch.where(top == -torch.inf, 0.0, top)
    return top, total_a * torch.exp(top_a - base) + total_b * torch.exp(top_b - base)


def softmax_stats(blocks: Iterator[Tensor]) -> tuple[Tensor, Tensor]:
    """(top, total), (n_rows,) each and in float32, of rows that come in blocks (n_rows, some columns), in one pass."""
    top = total = None
    for block in blocks:
        block = block.float()
        if top is None:
            top, total = torch.full((len(block),), -torch.inf), torch.zeros(len(block))
        new = torch.maximum(top, block.amax(1))
        base = torch.where(new == -torch.inf, 0.0, new)
        total = torch.where(total > 0, total * torch.exp(base - top), 0.0) + torch.exp(block - base[:, None]).sum(1)
        top = new
    return top, total
