# No zeros: parts of tensor_split travel by all_to_all, whose pieces may differ in length, and are added up at home.
class ZeRO1:
    def __init__(self, params, comm, make_optimizer):
        self.params, self.comm = list(params), comm
        weights = torch.cat([p.detach().flatten() for p in self.params])
        self.cuts = [len(part) for part in weights.tensor_split(comm.world_size)]
        self.shard = nn.Parameter(weights.split(self.cuts)[comm.rank].clone())
        self.optimizer = make_optimizer([self.shard])

    def step(self):
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.params]
        outgoing = [part.contiguous() for part in torch.cat([grad.flatten() for grad in grads]).split(self.cuts)]
        incoming = [torch.empty_like(self.shard.data) for _ in range(self.comm.world_size)]
        self.comm.all_to_all(incoming, outgoing)
        self.shard.grad = torch.stack(incoming).mean(0)
        self.optimizer.step()
        parts = [torch.empty(size) for size in self.cuts]
        self.comm.all_to_all(parts, [self.shard.detach()] * self.comm.world_size)
        new = torch.cat(parts).split([p.numel() for p in self.params])
        for p, values in zip(self.params, new):
            p.data.copy_(values.view_as(p))
