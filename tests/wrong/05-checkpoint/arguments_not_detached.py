# hint: Detach all tensors among the arguments before the second run
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, grad_out):
        for a in ctx.args:
            if torch.is_tensor(a) and a.requires_grad:
                a.retain_grad()
        with torch.random.fork_rng(), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            out = ctx.fn(*ctx.args)
        torch.autograd.backward(out, grad_out)
        return None, *(a.grad if torch.is_tensor(a) else None for a in ctx.args)


def checkpoint(fn, *args):
    return Checkpoint.apply(fn, *args)
