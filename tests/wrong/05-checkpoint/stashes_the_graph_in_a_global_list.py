# hint: More than the arguments is still alive
STASH = []


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        copies = [a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a for a in args]
        ctx.state = torch.get_rng_state()
        with torch.enable_grad():
            out = fn(*copies)
        STASH.append((fn, copies, out))
        return out.detach()

    @staticmethod
    def backward(ctx, grad_out):
        fn, copies, out = STASH.pop()
        with torch.random.fork_rng(), torch.no_grad():
            torch.set_rng_state(ctx.state)
            fn(*copies)
        torch.autograd.backward(out, grad_out)
        return None, *(a.grad if torch.is_tensor(a) else None for a in copies)


def checkpoint(fn, *args):
    return Checkpoint.apply(fn, *args)
