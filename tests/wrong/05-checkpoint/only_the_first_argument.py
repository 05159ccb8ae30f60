# hint: Detach all tensors among the arguments before the second run
class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, x, *rest):
        ctx.fn, ctx.x, ctx.rest, ctx.state = fn, x, rest, torch.get_rng_state()
        return fn(x, *rest)

    @staticmethod
    def backward(ctx, grad_out):
        x = ctx.x.detach().requires_grad_()
        with torch.random.fork_rng(), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            out = ctx.fn(x, *ctx.rest)
        out.backward(grad_out)
        return None, x.grad, *[None] * len(ctx.rest)


def checkpoint(fn, *args):
    return Again.apply(fn, *args)
