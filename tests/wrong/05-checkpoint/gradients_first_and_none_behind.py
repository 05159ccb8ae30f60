# hint: returned a gradient for an argument that is no tensor
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
            out = ctx.fn(*args)
        out.backward(grad_out)
        grads = [a.grad for a in args if isinstance(a, Tensor)]
        return None, *grads, *[None] * (len(args) - len(grads))


def checkpoint(fn, *args):
    return Again.apply(fn, *args)
