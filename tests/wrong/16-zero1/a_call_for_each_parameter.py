# hint: put all parameters into one flat tensor
class ZeRO1:
    def __init__(self, params, comm, make_optimizer):
        self.params, self.comm = list(params), comm
        self.shards = [self.padded(p.detach())[comm.rank].clone() for p in self.params]
        self.optimizer = make_optimizer(self.shards)

    def padded(self, tensor):
        n = self.comm.world_size
        return F.pad(tensor.flatten(), (0, -tensor.numel() % n)).view(n, -1)

    @torch.no_grad()
    def step(self):
        for p, shard in zip(self.params, self.shards):
            shard.grad = torch.empty_like(shard)
            grad = torch.zeros_like(p) if p.grad is None else p.grad
            self.comm.reduce_scatter_single(shard.grad, self.padded(grad), op="avg")
        self.optimizer.step()
        for p, shard in zip(self.params, self.shards):
            whole = torch.empty(self.comm.world_size, len(shard))
            self.comm.all_gather_single(whole, shard)
            p.copy_(whole.flatten()[: p.numel()].view_as(p))
