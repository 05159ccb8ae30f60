# hint: The gradients are those of the sum of fn's output
class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, grad_out):
        args = [a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in ctx.args]
        with torch.random.fork_rng(), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            ctx.fn(*args).sum().backward()
        return None, *(a.grad if isinstance(a, Tensor) else None for a in args)


def checkpoint(fn, *args):
    return Again.apply(fn, *args)
