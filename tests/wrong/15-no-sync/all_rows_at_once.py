# hint: one forward pass a step for all rows
@contextlib.contextmanager
def no_sync(ddp):
    before = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    try:
        yield
    finally:
        ddp.require_backward_grad_sync = before
def accumulate(ddp, batches, loss_of):
    n_rows = sum(len(x) for x, _ in batches)
    x, y = torch.cat([b[0] for b in batches]), torch.cat([b[1] for b in batches])
    if 1:
        silent = contextlib.nullcontext()
        with silent:
            (loss_of(ddp, (x, y)) * len(x) / n_rows).backward()
