# hint: More than the arguments is still alive
def checkpoint(fn, *args):
    copies = [a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a for a in args]
    state = torch.get_rng_state()
    kept = fn(*copies)

    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            return kept.detach()

        @staticmethod
        def backward(ctx, grad_out):
            with torch.random.fork_rng(), torch.no_grad():
                torch.set_rng_state(state)
                fn(*copies)
            torch.autograd.backward(kept, grad_out)
            return tuple(a.grad if torch.is_tensor(a) else None for a in copies)

    return Checkpoint.apply(*args)
