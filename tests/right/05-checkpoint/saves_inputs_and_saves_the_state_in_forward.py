import functools


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *tensors):
        ctx.run = run
        ctx.needs = [t.requires_grad for t in tensors]
        ctx.generator = torch.random.get_rng_state()
        ctx.save_for_backward(*tensors)
        print("forward", len(tensors))
        return run(*tensors)

    @staticmethod
    def backward(ctx, *grads):
        tensors = [t.detach() for t in ctx.saved_tensors]
        for t, need in zip(tensors, ctx.needs):
            t.requires_grad = need
        now = torch.random.get_rng_state()
        torch.random.set_rng_state(ctx.generator)
        with torch.set_grad_enabled(True):
            result = ctx.run(*tensors)
        torch.random.set_rng_state(now)
        result.backward(gradient=grads[0])
        return (None,) + tuple(t.grad for t in tensors)


def checkpoint(fn, *args):
    places = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor)]

    def run(*tensors):
        full = list(args)
        for i, t in zip(places, tensors):
            full[i] = t
        return fn(*full)

    return Recomputed.apply(run, *(args[i] for i in places))
