# As with checkpointing: forward without autograd; backward gathers, runs the unit again, and asks autograd.
from torch.func import functional_call


class Sharded(nn.Module):
    def __init__(self, module, comm, param_dtype, reduce_dtype):
        super().__init__()
        self.comm, self.dtypes = comm, (param_dtype, reduce_dtype)
        self.names = [name for name, _ in module.named_parameters()]
        self.sizes = [p.shape for p in module.parameters()]
        row = nn.utils.parameters_to_vector(module.parameters()).detach()
        per_rank = (len(row) + comm.world_size - 1) // comm.world_size
        mine = torch.zeros(per_rank)
        part = row[comm.rank * per_rank : (comm.rank + 1) * per_rank]
        mine[: len(part)] = part
        trains = next(module.parameters()).requires_grad
        for p in module.parameters():
            p.data = torch.empty(0)
        self.shard = nn.Parameter(mine, requires_grad=trains)
        self.call = lambda params, x: functional_call(module, params, (x,))

    def params(self):
        mine = self.shard.detach().to(self.dtypes[0])
        parts = [torch.empty_like(mine) for _ in range(self.comm.world_size)]
        self.comm.all_gather(parts, mine)
        row, found = torch.cat(parts), []
        for shape in self.sizes:
            found.append(row[: shape.numel()].view(shape))
            row = row[shape.numel() :]
        return found

    def forward(self, x):
        return Again.apply(x, self.shard, self)


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, unit):
        ctx.save_for_backward(x)
        ctx.unit = unit
        return unit.call(dict(zip(unit.names, unit.params())), x)

    @staticmethod
    def backward(ctx, grad):
        unit, (x,) = ctx.unit, ctx.saved_tensors
        wants_x, wants_shard, _ = ctx.needs_input_grad
        with torch.enable_grad():
            x = x.detach().requires_grad_(wants_x)
            params = [p.detach().requires_grad_(wants_shard) for p in unit.params()]
            out = unit.call(dict(zip(unit.names, params)), x)
            wanted = [x] * wants_x + params * wants_shard
            grads = list(torch.autograd.grad(out, wanted, grad))
        del out, params
        grad_x = grads.pop(0) if wants_x else None
        if not wants_shard:
            return grad_x, None, None
        row = torch.cat([one.flatten() for one in grads]).to(unit.dtypes[1])
        row = F.pad(row, (0, len(unit.shard) * unit.comm.world_size - len(row)))
        mine = torch.empty(len(unit.shard), dtype=row.dtype)
        unit.comm.reduce_scatter(mine, list(row.chunk(unit.comm.world_size)), op="avg")
        return grad_x, mine.float(), None
