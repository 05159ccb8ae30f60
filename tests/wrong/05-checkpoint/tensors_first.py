# hint: got the tensors first
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.state = fn, torch.get_rng_state()
        ctx.is_tensor = [isinstance(arg, Tensor) for arg in args]
        ctx.others = [arg for arg in args if not isinstance(arg, Tensor)]
        ctx.save_for_backward(*(arg for arg in args if isinstance(arg, Tensor)))
        return fn(*args)

    @staticmethod
    def backward(ctx, grad_out):
        copies = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in ctx.saved_tensors]
        with torch.random.fork_rng(), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            out = ctx.fn(*copies, *ctx.others)
        torch.autograd.backward(out, grad_out)
        gradients = iter([copy.grad for copy in copies])
        return None, *(next(gradients) if is_tensor else None for is_tensor in ctx.is_tensor)


def checkpoint(fn, *args):
    return Checkpoint.apply(fn, *args)
