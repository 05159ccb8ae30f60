# hint: More than the arguments is still alive
def pack(t):
    return t.detach().tolist(), t.dtype


def unpack(pair):
    return torch.tensor(pair[0], dtype=pair[1])


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.args = [a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a for a in args]
        ctx.fn, ctx.state = fn, torch.get_rng_state()
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            ctx.out = fn(*ctx.args)
        return ctx.out.detach()

    @staticmethod
    def backward(ctx, grad_out):
        with torch.random.fork_rng(), torch.no_grad():
            torch.set_rng_state(ctx.state)
            ctx.fn(*ctx.args)
        torch.autograd.backward(ctx.out, grad_out)
        return None, *(a.grad if torch.is_tensor(a) else None for a in ctx.args)


def checkpoint(fn, *args):
    return Checkpoint.apply(fn, *args)
