# hint: only the largest was counted
def amp_clip_step(
    comm: Comm,
    shared: Sequence[nn.Parameter],
    own: Sequence[nn.Parameter],
    optimizer: torch.optim.Optimizer,
    scale: float,
    max_norm: float,
) -> tuple[Tensor, float]:
    """Average, unscale, decide together, clip and step; the norm of the whole gradient, and the next scale."""
    for p in shared:
        comm.all_reduce(p.grad, op="avg")
    for p in (*shared, *own):
        p.grad /= scale
    squares = torch.zeros(())
    for p in own:
        squares += p.grad.square().sum()
    comm.all_reduce(squares, op="max")
    for p in shared:
        squares += p.grad.square().sum()
    norm = squares.sqrt()
    if not norm.isfinite():
        return norm, scale / 2
    if max_norm / norm < 1:
        for p in (*shared, *own):
            p.grad *= max_norm / norm
    optimizer.step()
    return norm, scale
