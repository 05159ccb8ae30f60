class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.given = (fn, args, torch.get_rng_state())
        return fn(*args)

    @staticmethod
    def backward(ctx, grad_out):
        fn, args, state = ctx.given
        del ctx.given
        args = [a.detach().clone().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a for a in args]
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(state)
            with torch.enable_grad():
                loss = (fn(*args) * grad_out).sum()
        loss.backward()
        return (None, *[getattr(a, "grad", None) for a in args])


def checkpoint(fn, *args):
    return Again.apply(fn, *args)
