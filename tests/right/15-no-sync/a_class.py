class no_sync:
    def __init__(self, ddp):
        self.ddp = ddp

    def __enter__(self):
        self.before, self.ddp.require_backward_grad_sync = self.ddp.require_backward_grad_sync, False

    def __exit__(self, *error):
        self.ddp.require_backward_grad_sync = self.before


def accumulate(ddp, batches, loss_of):
    n_rows = sum(len(x) for x, _ in batches)
    for number, (x, y) in enumerate(batches, 1):
        silent = no_sync(ddp) if number < len(batches) else contextlib.nullcontext()
        with silent:
            (loss_of(ddp, (x, y)) * len(x) / n_rows).backward()
