# The backward pass gathers, runs the layer once more under autograd, and asks autograd for both gradients.
class ShardedLinear(torch.autograd.Function):
    @staticmethod
    def whole(shard, comm, n_out, n_in):
        parts = [torch.empty_like(shard) for _ in range(comm.world_size)]
        comm.all_gather(parts, shard)
        return torch.cat(parts)[: n_out * n_in].reshape(n_out, n_in)

    @staticmethod
    def forward(ctx, x, shard, comm, n_out, n_in):
        ctx.save_for_backward(x, shard)
        ctx.rest = comm, n_out, n_in
        return F.linear(x, ShardedLinear.whole(shard, comm, n_out, n_in))

    @staticmethod
    def backward(ctx, grad_y):
        x, shard = ctx.saved_tensors
        comm = ctx.rest[0]
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            weight = ShardedLinear.whole(shard.detach(), *ctx.rest).requires_grad_(ctx.needs_input_grad[1])
            wanted = [inner, weight] if ctx.needs_input_grad[1] else [inner]
            grads = torch.autograd.grad(F.linear(inner, weight), wanted, grad_y)
        if len(grads) == 1:
            return grads[0], None, None, None, None
        padded = shard.new_zeros(comm.world_size * len(shard))
        padded[: grads[1].numel()] = grads[1].flatten()
        mine = torch.empty_like(shard)
        comm.reduce_scatter(mine, list(padded.chunk(comm.world_size)))
        return grads[0], mine / comm.world_size, None, None, None
